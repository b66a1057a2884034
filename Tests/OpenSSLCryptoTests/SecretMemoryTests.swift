import Foundation
import OpenSSLCrypto
import Testing

/// Where secrets lie, as the kernel tells it (proc(5), `/proc/pid/smaps`).
@Suite struct SecretMemoryTests {
    /// The `VmFlags` of the mapping an address lies in.
    private func flags(of address: UInt) throws -> Set<Substring> {
        var isInside = false
        // The file has no size, so it is read to its end.
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let range = line.prefix { $0 != " " }.split(separator: "-")
            if range.count == 2, let low = UInt(range[0], radix: 16), let high = UInt(range[1], radix: 16) {
                isInside = (low..<high).contains(address)
            } else if isInside, line.hasPrefix("VmFlags:") {
                return Set(line.split(separator: " ").dropFirst())
            }
        }
        return []
    }

    private func address(of secret: SecretBytes) -> UInt {
        secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    }

    @Test func `secrets lie in locked pages that no core dump holds`() throws {
        let protection = SecretMemory.protect()
        #expect(protection != .none)
        // Asking again changes nothing: a second gateway of one process shares the pages.
        #expect(SecretMemory.protect() == protection && SecretMemory.protection == protection)
        let flags = try flags(of: address(of: .random(byteCount: 32)))
        #expect(flags.contains("dd"), "\(flags)")
        #expect(flags.contains("lo") == protection.isLocked, "\(flags)")
    }

    @Test func `more secrets than there are pages for are kept all the same, and counted`() throws {
        SecretMemory.protect()
        let before = SecretMemory.outsideCount
        let secrets = (0..<1_200).map { number in
            SecretBytes(byteCount: 4_096) {
                $0.initializeMemory(as: UInt8.self, repeating: UInt8(number % 251))
            }
        }
        #expect(SecretMemory.outsideCount > before)
        for (number, secret) in secrets.enumerated() {
            #expect(secret.withUnsafeBytes { $0.allSatisfy { $0 == UInt8(number % 251) } })
        }
    }
}
