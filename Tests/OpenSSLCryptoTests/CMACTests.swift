import OpenSSLCrypto
import Testing

@Suite struct CMACTests {
    private static let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    private static let message = hex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
            + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")

    private func code(of bytes: some Collection<UInt8>, under mac: inout AES256CMAC) -> [UInt8] {
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: bytes.count + AES256CMAC.blockByteCount, alignment: 1)
        defer { room.deallocate() }
        _ = room.initializeMemory(as: UInt8.self, repeating: 0xAA)
        room.copyBytes(from: bytes)
        let code = mac.code(of: room.baseAddress!, byteCount: bytes.count)
        return withUnsafeBytes(of: code.bigEndian) { Array($0) }
    }

    /// NIST SP 800-38B, appendix D.3.
    @Test(arguments: [
        (0, "028962f61b7bf89efc6b551f4667d983"), (16, "28a7023f452e8f82bd4bf28d8c37c35c"),
        (40, "aaf3d8f1de5640c232f5b169b9c911e6"), (64, "e1992190549f6ed5696a2c056c315410"),
    ])
    func `AES-256-CMAC gives the standard's codes`(byteCount: Int, expected: String) throws {
        var mac = try AES256CMAC(SecretBytes(copying: Self.key))
        let found = code(of: Self.message.prefix(byteCount), under: &mac)
        #expect(found == hex(expected))
    }

    @Test func `a code does not depend on the messages before it`() throws {
        var mac = try AES256CMAC(SecretBytes(copying: Self.key))
        let lengths = [64, 0, 40, 16, 40, 1]
        for length in lengths {
            var fresh = try AES256CMAC(SecretBytes(copying: Self.key))
            let found = code(of: Self.message.prefix(length), under: &mac)
            let expected = code(of: Self.message.prefix(length), under: &fresh)
            #expect(found == expected, "\(length) bytes")
        }
    }

    @Test func `a key has 32 bytes`() {
        #expect(throws: OpenSSLError.wrongByteCount(what: "an AES-256 key", expected: 32, actual: 16)) {
            _ = try AES256CMAC(SecretBytes(copying: [UInt8](repeating: 1, count: 16)))
        }
    }
}
