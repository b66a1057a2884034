/// Where a listening socket comes from.
package enum SocketSource: Hashable, Sendable {
    /// A socket file the process makes itself and removes when it stops.
    case path(SocketFile)
    /// A listening descriptor that another process made and owns, e.g. systemd: see ``InheritedSockets``.
    case inherited(descriptor: Int32)
}

/// A socket file: its path, owner and mode.
///
/// On Linux connecting needs write permission on the file and search permission on its directory
/// (unix(7)), so both carry a mode.
package struct SocketFile: Hashable, Sendable {
    /// Absolute, at most ``pathByteCountMax`` bytes of UTF-8.
    package var path: String
    /// Of the directory, made when it is not there. An existing one is brought to this mode, owner and group when
    /// nothing but sockets lies in it, and refused otherwise. `nil` takes an existing directory as it is, and makes
    /// one of mode 0700; only its owner and group may write in any.
    package var directoryMode: UInt32?
    package var socketMode: UInt32
    /// Numeric ids; `nil` keeps the process's own. Names are resolved by ``UnixAccounts``.
    package var ownerID: UInt32?
    package var groupID: UInt32?

    /// Bytes of a socket's path: `sun_path` is 108 with its closing zero (unix(7)).
    package static let pathByteCountMax = 107

    package init(
        path: String, directoryMode: UInt32? = 0o750, socketMode: UInt32 = 0o660, ownerID: UInt32? = nil,
        groupID: UInt32? = nil
    ) {
        self.path = path
        self.directoryMode = directoryMode
        self.socketMode = socketMode
        self.ownerID = ownerID
        self.groupID = groupID
    }

    /// The directory part, without a closing slash; `/` for a file in the root.
    package var directory: String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Held with `flock` for as long as the listener lives. Never removed: removing a lock file lets two
    /// processes hold two locks of one name.
    package var lockPath: String { path + ".lock" }

    /// What is wrong with the path before the file system is asked.
    func checkPath() throws(EndpointError) {
        let bytes = Array(path.utf8)
        guard let first = bytes.first else { throw .pathNotAbsolute(path: path) }
        // An abstract name (a zero first, or `@` as tools spell it) has no file, so no mode guards it.
        if first == 0 || first == UInt8(ascii: "@") { throw .abstractSocket(path: path) }
        guard first == UInt8(ascii: "/") else { throw .pathNotAbsolute(path: path) }
        if bytes.contains(0) { throw .abstractSocket(path: path) }
        if bytes.count > Self.pathByteCountMax {
            throw .pathTooLong(path: path, byteCount: bytes.count, byteCountMax: Self.pathByteCountMax)
        }
    }
}
