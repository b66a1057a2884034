import Glibc
import UnixSockets

/// What `sendgate doctor` asks of the machine and nothing else does.
enum MachineState {
    /// Every group of a user, its own first.
    static func groupIDs(ofUser user: UInt32) -> Set<UInt32> {
        guard let name = userName(user), let own = UnixAccounts.primaryGroupID(ofUser: user) else {
            return []
        }
        var count: Int32 = 64
        while true {
            var groups = [gid_t](repeating: 0, count: Int(count))
            // Says how many there are when the room is too small.
            if getgrouplist(name, own, &groups, &count) >= 0 { return Set(groups.prefix(Int(count))) }
            guard count <= groupCountMax else { return [own] }
        }
    }

    /// The kernel's own bound (NGROUPS_MAX).
    private static let groupCountMax: Int32 = 65_536

    static func userName(_ user: UInt32) -> String? {
        getpwuid(user).flatMap { $0.pointee.pw_name }.map { String(cString: $0) }
    }

    static func groupName(_ group: UInt32) -> String? {
        getgrgid(group).flatMap { $0.pointee.gr_name }.map { String(cString: $0) }
    }

    /// Whether a client of NTP keeps the clock right; `nil` where the kernel does not say.
    static var isClockSynchronized: Bool? {
        // <sys/timex.h> is no part of Swift's Glibc. The layout of `struct timex` is the kernel's interface: `modes`, four
        // numbers of eight bytes, then `status`.
        typealias Adjtimex = @convention(c) (UnsafeMutableRawPointer) -> Int32
        guard let symbol = dlsym(nil, "adjtimex") else { return nil }
        let adjtimex = unsafeBitCast(symbol, to: Adjtimex.self)
        return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 8) { values in
            values.initializeMemory(as: UInt8.self, repeating: 0)
            let state = adjtimex(values.baseAddress!)
            guard state >= 0 else { return nil }
            let status = values.load(fromByteOffset: 40, as: Int32.self)
            return state != stateError && status & statusUnsynchronized == 0
        }
    }

    /// `TIME_ERROR` and `STA_UNSYNC` (adjtimex(2)).
    private static let (stateError, statusUnsynchronized): (Int32, Int32) = (5, 0x40)

    /// The process that listens at a path.
    ///
    /// - Returns: `nil` when none does, or when it may not be connected to.
    static func server(at path: String) -> ProcessCredentials? {
        guard (1...SocketFile.pathByteCountMax).contains(path.utf8.count) else { return nil }
        // Non-blocking: a full queue of connections is a fault to tell and none to wait for.
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let connected = SystemCall.withAddress(of: path) { address, length in
            SystemCall.retrying { connect(descriptor, address, length) }
        }
        return connected == 0 ? ProcessCredentials(ofConnection: descriptor) : nil
    }
}
