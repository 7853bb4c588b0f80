package org.apache.spark.sql.delta.sda

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.delta.actions.{AddFile, FileAction}
import org.apache.spark.sql.delta.commands.WriteIntoDelta
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaLog, DeltaOperations, DeltaOptions, OptimisticTransaction}
import org.apache.spark.sql.execution.datasources.BasicWriteJobStatsTracker
import org.apache.spark.sql.sources.{BaseRelation, CreatableRelationProvider}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Dataset, Row, SQLContext, SaveMode, SparkSession}

/** Delta's write with `txnAppId` and `txnVersion`, which asks the checksum file of the last commit what it can.
  *
  * For the newest version of a transaction id, and for the files that an overwrite replaces, the original replays the
  * table's log with a query of Spark at each commit. The checksum file, which Delta writes beside the commit, has
  * both. Without it, this asks as the original does. It is in a package of Delta's, because it extends internal classes.
  *
  * With the option `writtenFiles`, the rows are in files of the table's directory already: the option has them as
  * Delta's log has added files, in a JSON array. The frame then has no rows, only the columns.
  */
class DeltaCommits extends CreatableRelationProvider {
  override def createRelation(
      context: SQLContext, mode: SaveMode, parameters: Map[String, String], data: DataFrame): BaseRelation = {
    val session = context.sparkSession
    val log = DeltaLog.forTable(session, new Path(parameters("path")), parameters)
    val options = new DeltaOptions(parameters, session.sessionState.conf)
    val properties = DeltaConfigs.validateConfigurations(parameters.filter(_._1.startsWith("delta.")))
    val files = parameters.get("writtenFiles").map(JsonUtils.fromJson[Array[AddFile]](_).toSeq)
    require(files.isEmpty || options.replaceWhere.isEmpty, "an overwrite of a part writes its rows itself")
    new Write(log, mode, options, properties, data, files).run(session)
    new BaseRelation {
      override def sqlContext: SQLContext = context
      override def schema: StructType = data.schema
    }
  }
}

private class Write(
    log: DeltaLog,
    mode: SaveMode,
    options: DeltaOptions,
    properties: Map[String, String],
    data: DataFrame,
    files: Option[Seq[AddFile]])
    extends WriteIntoDelta(log, mode, options, Nil, properties, data) {
  override def run(session: SparkSession): Seq[Row] = {
    val transaction = new Transaction(log, files)
    OptimisticTransaction.withActive(transaction) {
      if (!hasBeenExecuted(transaction, session, Some(options))) {
        val replaced = if (isReplacement(transaction)) transaction.filterFiles().map(_.remove) else Nil
        val rows = if (isReplacement(transaction)) copy(mode = SaveMode.Append) else this
        val written = rows.writeAndReturnCommitData(transaction, session)
        val operation = DeltaOperations.Write(mode, None, options.replaceWhere, options.userMetadata)
        transaction.commitIfNeeded(written.actions ++ replaced, operation, tags = written.stringTags)
      }
    }
    Seq.empty
  }

  /** Of a whole table, as an append and removals: an overwrite looks up domains, which no table here has. */
  private def isReplacement(transaction: Transaction) =
    mode == SaveMode.Overwrite && options.replaceWhere.isEmpty && transaction.readVersion >= 0
}

private class Transaction(log: DeltaLog, files: Option[Seq[AddFile]])
    extends OptimisticTransaction(log, None, log.update()) {
  override def txnVersion(id: String): Long =
    snapshot.checksumOpt.flatMap(_.setTransactions).fold(super.txnVersion(id)) { known =>
      readTxn += id // of two commits with the same id, one must fail
      known.find(_.appId == id).fold(-1L)(_.version)
    }

  override def filterFiles(): Seq[AddFile] =
    snapshot.checksumOpt.flatMap(_.allFiles).fold(super.filterFiles()) { known =>
      trackReadPredicates(Seq(TrueLiteral))
      trackFilesRead(known)
      known
    }

  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]): Seq[FileAction] =
    files.fold(super.writeFiles(data, options, isOptimize, constraints)) { written =>
      hasWritten = true
      val metrics = BasicWriteJobStatsTracker.metrics
      metrics("numFiles").set(written.size)
      metrics("numOutputBytes").set(written.map(_.size).sum)
      metrics("numOutputRows").set(written.flatMap(_.numPhysicalRecords).sum)
      registerSQLMetrics(data.sparkSession, metrics)
      written
    }
}
