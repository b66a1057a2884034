/// Why the endpoint does not start. Every case names what it found; ``hint`` says what to do.
package enum EndpointError: Error, Hashable, Sendable {
    case noListener
    /// ``EndpointLimits/firstContradiction``.
    case contradictoryLimits(String)
    case abstractSocket(path: String)
    case pathNotAbsolute(path: String)
    case pathTooLong(path: String, byteCount: Int, byteCountMax: Int)
    case directoryMissing(path: String)
    case notADirectory(path: String)
    /// Every user may write in the directory, and could put a socket of their own there.
    case directoryOpenToAll(path: String, mode: UInt32)
    /// The directory is another user's or group's, or has another mode, and is not one to change unasked.
    /// `found` and `wanted` read `uid:gid, mode 750`.
    case directoryNotAsConfigured(path: String, found: String, wanted: String)
    /// Something that is no socket already has the path.
    case notASocket(path: String)
    /// A process answers on the path.
    case socketInUse(path: String)
    /// Another process holds the lock beside the socket, so it is starting, running or stopping.
    case lockHeld(path: String)
    /// The file is a socket and could not be tried, so it is not known to be stale.
    case cannotTell(path: String, errorNumber: Int32)
    /// The port of the loopback cannot be listened on.
    case portRefused(address: String, errorNumber: Int32)
    /// The descriptor is not a listening Unix stream socket.
    case notAListener(descriptor: Int32)
    /// A socket was handed over whose directory belongs to neither root nor the process, so that another user can put a socket
    /// of their own in its place.
    case directoryOfStranger(path: String, userID: UInt32)
    /// A TCP socket was handed over that is reached from elsewhere.
    case notOnLoopback(address: String)
    /// `NOTIFY_SOCKET` or its companions make no sense.
    case notifySocketMalformed(String)
    /// `LISTEN_FDS` and its companions contradict themselves.
    case inheritedSocketsMalformed(String)
    /// The process may not open as many descriptors as ``EndpointLimits/connections`` needs.
    case tooFewDescriptors(allowed: Int, needed: Int)
    /// A system call failed.
    case system(call: String, path: String, errorNumber: Int32)
    /// A listener stopped without being asked to.
    case listenerClosed(listener: Int)
    case alreadyStarted
}

extension EndpointError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noListener: "no socket is configured"
        case .contradictoryLimits(let sentence): "the endpoint's limits contradict themselves: \(sentence)"
        case .abstractSocket(let path): "`\(printable(path))` is an abstract socket"
        case .pathNotAbsolute(let path): "the socket path `\(path)` is not absolute"
        case .pathTooLong(let path, let count, let max):
            "the socket path `\(path)` has \(count) bytes, \(max) are allowed"
        case .directoryMissing(let path): "the directory above `\(path)` does not exist"
        case .notADirectory(let path): "`\(path)` is not a directory"
        case .directoryOpenToAll(let path, let mode):
            "everybody may write in `\(path)` (mode \(String(mode, radix: 8)))"
        case .directoryNotAsConfigured(let path, let found, let wanted):
            "`\(path)` is \(found), and \(wanted) is configured"
        case .notASocket(let path): "`\(path)` exists and is not a socket"
        case .socketInUse(let path): "a process already answers on `\(path)`"
        case .lockHeld(let path): "another process holds the lock `\(path)`"
        case .cannotTell(let path, let number):
            "cannot tell whether the socket `\(path)` is in use: \(SystemCall.message(number))"
        case .portRefused(let address, let number):
            "cannot listen on `\(address)`: \(SystemCall.message(number))"
        case .notAListener(let descriptor): "descriptor \(descriptor) is not a listening Unix stream socket"
        case .directoryOfStranger(let path, let user):
            "`\(path)` belongs to uid \(user), and a socket in it was handed over"
        case .notOnLoopback(let address):
            "a socket that listens on `\(address)` was handed over, and only the loopback is served"
        case .notifySocketMalformed(let sentence): "the service manager's address makes no sense: \(sentence)"
        case .inheritedSocketsMalformed(let sentence): "the inherited sockets make no sense: \(sentence)"
        case .tooFewDescriptors(let allowed, let needed):
            "the process may open \(allowed) descriptors and needs \(needed)"
        case .system(let call, let path, let number):
            "\(call) failed for `\(path)`: \(SystemCall.message(number))"
        case .listenerClosed(let listener): "listener \(listener) stopped by itself"
        case .alreadyStarted: "the endpoint was started before"
        }
    }

    /// The next step, for its own line.
    package var hint: String {
        switch self {
        case .noListener: "name at least one socket in the configuration"
        case .contradictoryLimits: "every bound is at least 1, and a reserved share is less than its total"
        case .abstractSocket:
            "use a path such as `/run/sendgate/gate.sock`: no file mode guards an abstract name"
        case .pathNotAbsolute: "write the path from the root, e.g. `/run/sendgate/gate.sock`"
        case .pathTooLong: "choose a shorter directory: the kernel's limit is 107 bytes"
        case .directoryMissing(let path):
            "create it first, or let systemd do it with `RuntimeDirectory=`: \(path)"
        case .notADirectory: "remove the file, or configure another directory"
        case .directoryOpenToAll: "give the socket a directory of its own, mode 0750"
        case .directoryNotAsConfigured:
            "give the socket a directory of its own, or bring this one or `directory_mode`, `owner` and `group` in line"
        case .notASocket: "configure another path; the gateway never removes a file it did not make"
        case .socketInUse, .lockHeld: "stop the other process, or configure another path"
        case .cannotTell: "run as the socket's owner, or remove the file after checking that nothing uses it"
        case .portRefused: "stop the process that has the port, or configure another one above 1023"
        case .notAListener: "in the systemd unit use `ListenStream=` with a path and `Accept=no`"
        case .directoryOfStranger: "let root own the directory, as the package's tmpfiles do"
        case .notOnLoopback:
            "write `ListenStream=127.0.0.1:PORT` in the socket unit, and put a proxy in front"
        case .notifySocketMalformed: "start through systemd, or unset NOTIFY_SOCKET and WATCHDOG_USEC"
        case .inheritedSocketsMalformed:
            "give each configured name to one socket unit of this service (`FileDescriptorName=`), and start through it; without systemd unset LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES"
        case .tooFewDescriptors(_, let needed):
            "raise the limit (`LimitNOFILE=\(needed)`) or allow fewer connections"
        case .system: "check that the directory exists and that this user may write in it"
        case .listenerClosed:
            "see the log line before this one; the service manager may start the gateway again"
        case .alreadyStarted: "make a new endpoint: one is good for one run"
        }
    }

    private func printable(_ path: String) -> String {
        path.hasPrefix("\0") ? "@" + path.dropFirst() : path
    }
}
