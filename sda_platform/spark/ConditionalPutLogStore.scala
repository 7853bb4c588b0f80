package sda.platform

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.FileAlreadyExistsException
import java.util.{Iterator => JavaIterator}

import io.delta.storage.S3SingleDriverLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import software.amazon.awssdk.awscore.exception.AwsServiceException

/** Delta's log store for an S3 object store that several engines write to.
  *
  * Delta's own excludes only writers of its process: it looks whether a commit file exists, then puts it. This one puts
  * it under the condition that no object has its name (`If-None-Match: *`), so of all writers one succeeds.
  */
class ConditionalPutLogStore(conf: Configuration) extends S3SingleDriverLogStore(conf) {
  private val Conflicts = 10

  override def write(
      path: Path, actions: JavaIterator[String], overwrite: java.lang.Boolean, hadoopConf: Configuration): Unit =
    if (overwrite) super.write(path, actions, overwrite, hadoopConf)
    else {
      val text = new StringBuilder
      actions.forEachRemaining(line => text.append(line).append('\n'))
      putIfAbsent(path.getFileSystem(hadoopConf), path, text.toString.getBytes(UTF_8), Conflicts)
    }

  private def putIfAbsent(files: FileSystem, path: Path, content: Array[Byte], attempts: Int): Unit =
    try {
      val file = files.createFile(path).create().overwrite(false).recursive()
        .must("fs.option.create.conditional.overwrite", true).build()
      try file.write(content)
      catch { case error: Throwable => file.abort(); throw error }
      file.close()
    } catch {
      case _: org.apache.hadoop.fs.FileAlreadyExistsException => throw new FileAlreadyExistsException(path.toString)
      case error: IOException =>
        status(error) match {
          case Some(412) => throw new FileAlreadyExistsException(path.toString)
          case Some(409) if attempts > 1 => putIfAbsent(files, path, content, attempts - 1) // another put is under way
          case _ => throw error
        }
    }

  private def status(error: Throwable): Option[Int] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).collectFirst {
      case answer: AwsServiceException => answer.statusCode
    }
}
