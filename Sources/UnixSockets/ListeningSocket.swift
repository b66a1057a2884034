import Glibc

/// A socket that is bound, and everything needed to take it away again.
///
/// The descriptor goes to SwiftNIO, which then owns it; the lock stays here until ``release()``.
package struct ListeningSocket: Sendable {
    package let descriptor: Int32
    /// `nil` for an inherited socket: the process that made it removes it.
    package let file: File?

    package struct File: Sendable {
        package var path: String
        var lockDescriptor: Int32
        /// The file that was bound, so that another process's socket at this path is left alone.
        var device: UInt64
        var inode: UInt64
    }

    /// Opens what `source` names. Makes system calls that may block for a moment; for the start only.
    package static func open(_ source: SocketSource) throws(EndpointError) -> ListeningSocket {
        switch source {
        case .path(let file):
            try file.checkPath()
            try makeDirectory(of: file)
            return try bind(file)
        case .inherited(let descriptor): return try adopt(descriptor)
        }
    }

    /// Opens a socket file for every user who may search its directory. The directory is the operator's, who says by its mode
    /// and group which users those are: it is neither made nor changed.
    package static func openPublic(path: String) throws(EndpointError) -> ListeningSocket {
        let file = SocketFile(path: path, directoryMode: nil, socketMode: 0o666)
        try file.checkPath()
        return try bind(file)
    }

    // MARK: A socket file

    /// Lock, look, bind, set owner and mode. No client can connect before SwiftNIO calls `listen`, so the
    /// file is never reachable with a wider mode than the configured one.
    ///
    /// - Precondition: `file` has passed ``SocketFile/checkPath()``, and its directory is there.
    private static func bind(_ file: SocketFile) throws(EndpointError) -> ListeningSocket {
        let lock = try takeLock(of: file)
        do throws(EndpointError) {
            try removeStaleSocket(of: file)
            let descriptor = try makeSocket(at: file)
            do throws(EndpointError) {
                try setOwnerAndMode(of: file)
                var status = stat()
                guard lstat(file.path, &status) == 0 else {
                    throw .system(call: "lstat", path: file.path, errorNumber: errno)
                }
                return ListeningSocket(
                    descriptor: descriptor,
                    file: File(
                        path: file.path, lockDescriptor: lock, device: UInt64(status.st_dev),
                        inode: UInt64(status.st_ino)))
            } catch {
                unlink(file.path)
                close(descriptor)
                throw error
            }
        } catch {
            close(lock)
            throw error
        }
    }

    private static func makeDirectory(of file: SocketFile) throws(EndpointError) {
        let directory = file.directory
        let mode = mode_t(file.directoryMode ?? 0o700)
        if mode & S_IWOTH != 0 { throw .directoryOpenToAll(path: directory, mode: UInt32(mode)) }
        if mkdir(directory, mode) == 0 {
            // The umask may have taken bits away; the mode asked for is the mode given.
            guard chmod(directory, mode) == 0 else {
                throw .system(call: "chmod", path: directory, errorNumber: errno)
            }
            try setOwner(of: directory, file)
            return
        }
        switch errno {
        case EEXIST: try reconcileDirectory(of: file)
        case ENOENT: throw .directoryMissing(path: directory)
        default: throw .system(call: "mkdir", path: directory, errorNumber: errno)
        }
    }

    /// Brings a directory that is there to what is configured, or refuses it: a user who may write in it can put a
    /// socket of their own in the gateway's place, and a user who may not search it cannot connect.
    private static func reconcileDirectory(of file: SocketFile) throws(EndpointError) {
        let directory = file.directory
        let descriptor = SystemCall.retrying { Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            if errno == ENOTDIR { throw .notADirectory(path: directory) }
            throw .system(call: "open", path: directory, errorNumber: errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw .system(call: "fstat", path: directory, errorNumber: errno)
        }
        let found = UInt32(status.st_mode & 0o7777)
        if found & UInt32(S_IWOTH) != 0 { throw .directoryOpenToAll(path: directory, mode: found) }
        let trusted = [geteuid(), 0]
        let owner = file.ownerID ?? (trusted.contains(status.st_uid) ? status.st_uid : geteuid())
        let mode = file.directoryMode ?? found
        // A group without a bit in the mode may do nothing, whichever it is.
        let group = file.groupID ?? (mode & 0o070 == 0 ? status.st_gid : getegid())
        if (status.st_uid, status.st_gid, found) == (owner, group, mode) { return }
        if file.directoryMode == nil, file.groupID == nil, status.st_uid == owner { return }
        let wanted = "\(owner):\(group), mode \(String(mode, radix: 8))"
        let refusal = EndpointError.directoryNotAsConfigured(
            path: directory,
            found: "\(status.st_uid):\(status.st_gid), mode \(String(found, radix: 8))", wanted: wanted)
        // A directory of another user, or one that holds other things than sockets, has another purpose.
        guard trusted.contains(status.st_uid) || status.st_uid == owner, holdsSocketsOnly(directory),
            fchown(descriptor, owner, group) == 0, fchmod(descriptor, mode_t(mode)) == 0
        else { throw refusal }
    }

    /// Whether every name in a directory is a socket or the lock of one.
    private static func holdsSocketsOnly(_ directory: String) -> Bool {
        guard let stream = opendir(directory) else { return false }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." || name.hasSuffix(".lock") { continue }
            var status = stat()
            guard lstat("\(directory)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
                return false
            }
        }
        return true
    }

    private static func takeLock(of file: SocketFile) throws(EndpointError) -> Int32 {
        let flags = O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW
        let descriptor = SystemCall.retrying { Glibc.open(file.lockPath, flags, 0o600) }
        guard descriptor >= 0 else { throw .system(call: "open", path: file.lockPath, errorNumber: errno) }
        guard SystemCall.retrying({ flock(descriptor, LOCK_EX | LOCK_NB) }) == 0 else {
            let number = errno
            close(descriptor)
            if number == EWOULDBLOCK { throw .lockHeld(path: file.lockPath) }
            throw .system(call: "flock", path: file.lockPath, errorNumber: number)
        }
        return descriptor
    }

    /// Removes what a crash left behind, and nothing else. Under the lock, so that two starting gateways
    /// cannot remove each other's sockets.
    private static func removeStaleSocket(of file: SocketFile) throws(EndpointError) {
        var status = stat()
        if lstat(file.path, &status) != 0 {
            if errno == ENOENT { return }
            throw .system(call: "lstat", path: file.path, errorNumber: errno)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: file.path) }
        // Non-blocking, because a live listener with a full backlog would block the start; that is EAGAIN.
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        guard probe >= 0 else { throw .system(call: "socket", path: file.path, errorNumber: errno) }
        defer { close(probe) }
        let connected = SystemCall.withAddress(of: file.path) { address, length in
            SystemCall.retrying { connect(probe, address, length) }
        }
        if connected == 0 { throw .socketInUse(path: file.path) }
        switch errno {
        case ECONNREFUSED: break
        case EAGAIN: throw .socketInUse(path: file.path)
        // A socket of another kind (datagram, seqpacket) answers so: another program uses it.
        case EPROTOTYPE: throw .socketInUse(path: file.path)
        default: throw .cannotTell(path: file.path, errorNumber: errno)
        }
        guard unlink(file.path) == 0 else {
            throw .system(call: "unlink", path: file.path, errorNumber: errno)
        }
    }

    /// Linux makes the socket's file with the mode of the unbound socket less the umask, so `fchmod` before
    /// `bind` gives 0600 from the first moment without touching the umask, which all threads share.
    private static func makeSocket(at file: SocketFile) throws(EndpointError) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw .system(call: "socket", path: file.path, errorNumber: errno) }
        guard fchmod(descriptor, 0o600) == 0 else {
            let number = errno
            close(descriptor)
            throw .system(call: "fchmod", path: file.path, errorNumber: number)
        }
        let bound = SystemCall.withAddress(of: file.path) { address, length in
            Glibc.bind(descriptor, address, length)
        }
        guard bound == 0 else {
            let number = errno
            close(descriptor)
            if number == EADDRINUSE { throw .socketInUse(path: file.path) }
            throw .system(call: "bind", path: file.path, errorNumber: number)
        }
        return descriptor
    }

    private static func setOwnerAndMode(of file: SocketFile) throws(EndpointError) {
        try setOwner(of: file.path, file)
        guard chmod(file.path, mode_t(file.socketMode)) == 0 else {
            throw .system(call: "chmod", path: file.path, errorNumber: errno)
        }
    }

    private static func setOwner(of path: String, _ file: SocketFile) throws(EndpointError) {
        guard file.ownerID != nil || file.groupID != nil else { return }
        // -1 keeps what is there (chown(2)).
        guard lchown(path, file.ownerID ?? uid_t.max, file.groupID ?? gid_t.max) == 0 else {
            throw .system(call: "lchown", path: path, errorNumber: errno)
        }
    }

    // MARK: A socket of another process

    private static func adopt(_ descriptor: Int32) throws(EndpointError) -> ListeningSocket {
        guard case .unix(let path) = try listeningAddress(of: descriptor) else {
            throw .notAListener(descriptor: descriptor)
        }
        try checkDirectory(ofInherited: path)
        try takeOver(descriptor)
        return ListeningSocket(descriptor: descriptor, file: nil)
    }

    /// Takes over a socket for pages that every user may read: on the loopback, or a file in a directory of the operator's.
    package static func adoptPublic(_ descriptor: Int32) throws(EndpointError) -> ListeningSocket {
        switch try listeningAddress(of: descriptor) {
        case .unix(let path): try checkDirectory(ofInherited: path)
        case .internet(let text, let isLoopback):
            guard isLoopback else { throw .notOnLoopback(address: text) }
        }
        try takeOver(descriptor)
        return ListeningSocket(descriptor: descriptor, file: nil)
    }

    private enum InheritedAddress {
        case unix(path: String)
        case internet(String, isLoopback: Bool)
    }

    private static func listeningAddress(of descriptor: Int32) throws(EndpointError) -> InheritedAddress {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let named = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard named == 0, SystemCall.integerOption(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue),
            SystemCall.integerOption(SO_ACCEPTCONN, of: descriptor) == 1
        else { throw .notAListener(descriptor: descriptor) }
        let bytes = withUnsafeBytes(of: &storage) { Array($0.prefix(Int(length))) }
        switch Int32(storage.ss_family) {
        case AF_UNIX:
            let path = bytes.dropFirst(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)!)
            // A name that starts with a zero, or no name at all, is an abstract or autobound socket.
            guard let first = path.first, first != 0 else {
                throw .abstractSocket(path: "@descriptor \(descriptor)")
            }
            return .unix(path: String(decoding: path.prefix { $0 != 0 }, as: UTF8.self))
        case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size:
            let host = bytes[4..<8].map(String.init).joined(separator: ".")
            return .internet("\(host):\(port(bytes))", isLoopback: bytes[4] == 127)
        case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size:
            let isLoopback = bytes[8..<23].allSatisfy { $0 == 0 } && bytes[23] == 1
            let host = isLoopback ? "::1" : "an address of IPv6"
            return .internet("[\(host)]:\(port(bytes))", isLoopback: isLoopback)
        default: throw .notAListener(descriptor: descriptor)
        }
    }

    /// Of an address of either family, behind the two bytes of the family.
    private static func port(_ bytes: [UInt8]) -> UInt16 { UInt16(bytes[2]) << 8 | UInt16(bytes[3]) }

    /// The service manager made the file, with the owner and mode that its unit says. What is left to lose: a user who may
    /// write in the directory can put a socket of their own in its place.
    private static func checkDirectory(ofInherited path: String) throws(EndpointError) {
        let directory = SocketFile(path: path).directory
        var status = stat()
        guard stat(directory, &status) == 0 else {
            throw .system(call: "stat", path: directory, errorNumber: errno)
        }
        if status.st_mode & S_IWOTH != 0 {
            throw .directoryOpenToAll(path: directory, mode: UInt32(status.st_mode & 0o7777))
        }
        guard [0, geteuid()].contains(status.st_uid) else {
            throw .directoryOfStranger(path: directory, userID: status.st_uid)
        }
    }

    /// The protocol hands descriptors over without close-on-exec, because they had to survive one.
    private static func takeOver(_ descriptor: Int32) throws(EndpointError) {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags != -1, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != -1,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) != -1
        else { throw .system(call: "fcntl", path: "descriptor \(descriptor)", errorNumber: errno) }
    }

    // MARK: Afterwards

    /// Removes the socket file when it is still the one that was made here. Done before the listener closes, so that
    /// a client sees "no such file" rather than "refused" and no stale file is left.
    package func unlinkFile() {
        guard let file else { return }
        var status = stat()
        guard lstat(file.path, &status) == 0, UInt64(status.st_dev) == file.device,
            UInt64(status.st_ino) == file.inode
        else { return }
        unlink(file.path)
    }

    /// Gives the lock back. After this another gateway may start.
    package func release() {
        if let file { close(file.lockDescriptor) }
    }

    /// For a start that failed before SwiftNIO took the descriptor.
    package func abandon() {
        unlinkFile()
        if file != nil { close(descriptor) }
        release()
    }
}
