import Glibc

/// Names of Unix users and groups to the numbers the kernel speaks in.
package enum UnixAccounts {
    /// - Returns: `nil` for a name the system does not know.
    package static func userID(named name: String) -> UInt32? {
        var entry = passwd()
        return withRecord { buffer, count in
            var found: UnsafeMutablePointer<passwd>?
            let status = getpwnam_r(name, &entry, buffer, count, &found)
            return (status, found?.pointee.pw_uid)
        }
    }

    /// - Returns: `nil` for a name the system does not know.
    package static func groupID(named name: String) -> UInt32? {
        var entry = group()
        return withRecord { buffer, count in
            var found: UnsafeMutablePointer<group>?
            let status = getgrnam_r(name, &entry, buffer, count, &found)
            return (status, found?.pointee.gr_gid)
        }
    }

    /// The group of a user's first process.
    ///
    /// - Returns: `nil` for a user that the system does not know by a name.
    package static func primaryGroupID(ofUser userID: UInt32) -> UInt32? {
        var entry = passwd()
        return withRecord { buffer, count in
            var found: UnsafeMutablePointer<passwd>?
            let status = getpwuid_r(userID, &entry, buffer, count, &found)
            return (status, found?.pointee.pw_gid)
        }
    }

    /// A number of `/proc/sys/kernel`, such as `overflowuid`; `nil` where the kernel does not say.
    package static func kernelID(_ name: String) -> UInt32? {
        guard let file = fopen("/proc/sys/kernel/\(name)", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 32)
        guard fgets(&line, CInt(line.count), file) != nil else { return nil }
        return UInt32(String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init), as: UTF8.self))
    }

    /// A group lists its members in the record, so it may be long; more than 1 MiB is not believed.
    private static func withRecord(
        _ look: (UnsafeMutablePointer<CChar>, Int) -> (status: Int32, id: UInt32?)
    ) -> UInt32? {
        var byteCount = 4_096
        while byteCount <= 1_048_576 {
            let result = withUnsafeTemporaryAllocation(of: CChar.self, capacity: byteCount) {
                look($0.baseAddress!, byteCount)
            }
            if result.status != ERANGE { return result.status == 0 ? result.id : nil }
            byteCount *= 4
        }
        return nil
    }
}
