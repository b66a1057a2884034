import GateSteps
import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import Testing

@Suite struct UnsubscribeTokenTests {
    private static func key(_ number: UInt8) -> LinkKeys.Key {
        .init(id: "link-\(number)", secret: SecretBytes(copying: [UInt8](repeating: number, count: 32)))
    }

    private let id = GateVocabulary.Tag(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)
    private let keys = LinkKeys(current: key(1))

    @Test func `a token says its id to whoever has the key`() {
        let token = keys.token(for: id)
        #expect(token.utf8.count == 76 && token.utf8.count == UnsubscribeToken.characterCount)
        #expect(keys.id(in: token) == id)
        // The same link, whatever composes it.
        #expect(keys.token(for: id) == token)
    }

    @Test func `no byte of a token may be another one`() throws {
        let bytes = try #require(Base64URL.decode(keys.token(for: id)))
        #expect(bytes.count == UnsubscribeToken.byteCount)
        for position in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[position] ^= 1 << UInt8(bit)
                #expect(keys.id(in: Base64URL.encode(changed)) == nil, "byte \(position), bit \(bit)")
            }
        }
    }

    @Test func `a token that is cut, longer or spelled otherwise is none`() {
        let token = keys.token(for: id)
        for length in 0..<token.count { #expect(keys.id(in: String(token.prefix(length))) == nil) }
        for other in [token + "A", token + "=", token + "%00", " " + token, token.lowercased(), "", "/"] {
            #expect(keys.id(in: other) == nil, "\(other)")
        }
    }

    @Test func `an older key verifies and makes none, and an unknown key does neither`() {
        let rotated = LinkKeys(current: Self.key(2), older: [Self.key(1)])
        #expect(rotated.id(in: keys.token(for: id)) == id)
        #expect(rotated.token(for: id) != keys.token(for: id))
        #expect(keys.id(in: rotated.token(for: id)) == nil)
        // The id of a key is part of what is authenticated: the same secret under another id is another key.
        let renamed = LinkKeys(
            current: .init(id: "other", secret: SecretBytes(copying: [UInt8](repeating: 1, count: 32))))
        #expect(renamed.id(in: keys.token(for: id)) == nil)
    }

    @Test func `another version is no link, even of the right key`() throws {
        var bytes = try #require(Base64URL.decode(keys.token(for: id)))
        bytes[0] = 2
        let key = HMACKey(SecretBytes(copying: [UInt8](repeating: 1, count: 32)))
        let body = Array(bytes.prefix(UnsubscribeToken.byteCount - 32))
        #expect(keys.id(in: Base64URL.encode(body + key.authenticate(body))) == nil)
        bytes = [1] + body.dropFirst()
        #expect(keys.id(in: Base64URL.encode(bytes + key.authenticate(bytes))) == id)
    }
}
