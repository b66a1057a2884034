import Glibc
import UnixSockets

extension SocketFile {
    /// Why a user cannot reach the socket, by the directories above it; `nil` where nothing speaks against it.
    ///
    /// Whether the user is in a directory's group is not looked at: a directory that its group may enter is taken for reachable.
    func obstacle(forUser userID: UInt32) -> String? {
        guard userID != 0 else { return nil }
        var path = directory
        while true {
            var status = stat()
            // A directory that cannot be looked at is the listener's fault to tell.
            if stat(path, &status) == 0, status.st_uid != userID, status.st_mode & 0o011 == 0 {
                let mode = String(status.st_mode & 0o777, radix: 8)
                return
                    "uid \(userID) cannot reach `\(self.path)`, because only its owner may enter `\(path)` (mode \(mode)); run `chmod 0750 \(path)` and `chgrp` it to a group that this user is in"
            }
            guard path != "/", path != "." else { return nil }
            path = SocketFile(path: path).directory
        }
    }
}
