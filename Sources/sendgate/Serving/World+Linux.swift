import Foundation
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto

/// The machine's wall clock.
struct SystemClock: GatewayPipeline.Clock {
    func now() -> Instant {
        var time = timespec()
        guard clock_gettime(CLOCK_REALTIME, &time) == 0 else {
            preconditionFailure("this machine has no wall clock")
        }
        return Instant(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

/// OpenSSL's random generator, seeded by the kernel.
struct SystemIdentifiers: IdentifierSource {
    func randomBytes16() throws -> (high: UInt64, low: UInt64) {
        let bytes = try SecureRandom.bytes(16)
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return (number(bytes[..<8]), number(bytes[8...]))
    }
}

/// Room on the disk a directory lies on.
enum DiskSpace {
    /// Bytes an unprivileged process may still write.
    static func freeByteCount(at path: String) throws -> Int64 {
        var space = statvfs()
        while statvfs(path, &space) != 0 {
            guard errno == EINTR else {
                throw StoreError.unavailable(
                    "the free space of `\(path)` is not known: \(String(cString: strerror(errno)))")
            }
        }
        let (bytes, overflow) = UInt64(space.f_bavail).multipliedReportingOverflow(by: UInt64(space.f_frsize))
        return overflow ? Int64.max : Int64(clamping: bytes)
    }
}
