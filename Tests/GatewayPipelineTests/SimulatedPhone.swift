import CanonicalJSON
import Crypto
import Foundation
import GateVocabulary
import GatewayPipeline
import SealedFormat
import SealedPush
import Testing
import WireProtocol

/// A phone's key pair and what the app does with it.
struct DeviceKeyPair {
    private let privateKey = P256.KeyAgreement.PrivateKey()

    var publicKey: [UInt8] { Array(privateKey.publicKey.x963Representation) }

    func opener(keyID: String, app: String, device: String, origin: [UInt8]) throws -> SealedPushOpener {
        let originID = Hexadecimal.encode(Array(Crypto.SHA256.hash(data: origin)).prefix(8))
        return try SealedPushOpener(
            app: app, device: device, keys: [try DeviceKey(keyID: keyID, privateKey: privateKey)],
            origins: [try OriginKey(keyID: originID, publicKey: origin)], seen: InMemorySeenMessages())
    }

    /// What a challenge holds, opened step by step as the handbook's page on sealing has it.
    func nonce(of challenge: JSONObject, app: String, device: String) throws -> [UInt8] {
        let kidText = try #require(challenge["kid"]?.stringValue)
        let kid = try #require(Hexadecimal.decode(kidText))
        let mid = try #require(challenge["mid"]?.stringValue).replacingOccurrences(of: "-", with: "")
        let expiry = UInt64(try #require(challenge["exp"]?.integerValue))
        var info = Array("sendgate/sealed/v1".utf8) + [0] + [2] + [0x00, 0x10, 0x00, 0x01, 0x00, 0x02]
        for name in [app, device] { info += [0, UInt8(name.utf8.count)] + Array(name.utf8) }
        info += kid + Array(Crypto.SHA256.hash(data: publicKey))
        info += try #require(Hexadecimal.decode(mid)) + withUnsafeBytes(of: expiry.bigEndian) { Array($0) }
        let sealedText = try #require(challenge["ct"]?.stringValue)
        let sealed = try #require(Base64URL.decode(sealedText))
        var recipient = try HPKE.Recipient(
            privateKey: privateKey, ciphersuite: .P256_SHA256_AES_GCM_256, info: Data(info),
            encapsulatedKey: Data(sealed[..<65]))
        let plaintext = Array(try recipient.open(sealed[65...]))
        // Behind the origin's key id, its signature and the length.
        return Array(plaintext[74..<106])
    }

    /// - Returns: The proof of possession, 32 bytes.
    func proof(
        of envelope: String, keyID: String, app: String, device: String, origin: [UInt8], now: Instant
    ) throws -> String {
        try opener(keyID: keyID, app: app, device: device, origin: origin)
            .proof(forChallenge: envelope, now: UInt64(now.seconds))
    }
}

/// The envelope's one spelling, from the object an answer carries it in.
func envelopeText(_ object: JSONObject) throws -> String {
    let suite = try #require(object["s"]?.stringValue)
    let key = try #require(object["kid"]?.stringValue)
    let message = try #require(object["mid"]?.stringValue)
    let expiry = try #require(object["exp"]?.integerValue)
    let sealed = try #require(object["ct"]?.stringValue)
    return
        #"{"v":1,"s":"\#(suite)","kid":"\#(key)","mid":"\#(message)","exp":\#(expiry),"ct":"\#(sealed)"}"#
}
