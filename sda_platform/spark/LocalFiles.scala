package sda.platform

import java.net.URI
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{ChecksumFs, DelegateToFileSystem, FileStatus, FsConstants, LocalFileSystem, Path, RawLocalFileSystem}

/** Hadoop's file system of this machine, which asks Java instead of starting programs.
  *
  * PySpark does not have Hadoop's native library. Without it, the original starts `chmod` for the permissions of each
  * file, and `readlink` to see whether a name is a link. For one commit of Delta it starts thirty processes.
  */
class RawLocalFiles extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit =
    if (permission.getStickyBit) super.setPermission(path, permission)
    else {
      val symbols = Seq(permission.getUserAction, permission.getGroupAction, permission.getOtherAction).map(_.SYMBOL)
      Files.setPosixFilePermissions(pathToFile(path).toPath, PosixFilePermissions.fromString(symbols.mkString))
    }

  override def getFileLinkStatus(path: Path): FileStatus =
    if (Files.isSymbolicLink(pathToFile(path).toPath)) super.getFileLinkStatus(path) else getFileStatus(path)
}

/** The same with Hadoop's checksum files: `fs.file.impl`. */
class LocalFiles extends LocalFileSystem(new RawLocalFiles)

private class RawLocalContext(conf: Configuration)
    extends DelegateToFileSystem(FsConstants.LOCAL_FS_URI, new RawLocalFiles, conf, FsConstants.LOCAL_FS_URI.getScheme, false) {
  override def getUriDefaultPort: Int = -1
  override def isValidName(name: String): Boolean = true // names of other systems, too
}

/** The same for Hadoop's other interface, by which Delta renames a commit: `fs.AbstractFileSystem.file.impl`. */
class LocalContext(uri: URI, conf: Configuration) extends ChecksumFs(new RawLocalContext(conf))
