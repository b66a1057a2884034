import CanonicalJSON
import Crypto
import Foundation
import GateVocabulary
import GatewayPipeline
import SealedPush
import Testing

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
