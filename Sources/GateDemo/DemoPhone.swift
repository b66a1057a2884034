import CanonicalJSON
import CommandTerminal
import Crypto
import Foundation
import SealedFormat
import SealedPush
import WireProtocol

/// One phone: its key pair, its proof of possession, and what its app can read.
final class DemoPhone {
    let user: String
    let device: String
    let platform: String
    static let app = "no.getdrop.app"
    private let privateKey = P256.KeyAgreement.PrivateKey()
    private let seen = InMemorySeenMessages()
    private var keyID = ""
    private let origin: OriginKey

    /// - Parameter origin: The gateway's public origin key, which a real app has pinned.
    init(user: String, device: String, platform: String, origin: [UInt8]) throws {
        self.user = user
        self.device = device
        self.platform = platform
        let id = SHA256.hash(data: origin).prefix(8).map { String(format: "%02x", $0) }.joined()
        self.origin = try OriginKey(keyID: id, publicKey: origin)
    }

    /// Registers the device and its key with the app's backend, and proves that the key is here.
    func enrol(on stage: DemoStage, region: String) async throws {
        // Of either platform: hexadecimal, as a token of Apple's is.
        let token = device.utf8.map { String($0, radix: 16) }.joined()
        let path = "/v1/recipients/\(user)/devices/\(device)"
        try await expect(
            200,
            stage.call(
                "product", "PUT", path,
                [
                    "platform": .string(platform), "app": .string(Self.app),
                    "token": .string(token), "region": .string(region),
                    "time_zone": region == "NO" ? "Europe/Oslo" : "Europe/Berlin", "os_permission": "granted",
                    "critical_alerts": true,
                ]))
        let publicKey = Base64URL.encode(privateKey.publicKey.x963Representation)
        let added = try await expect(
            201,
            stage.call(
                "product", "POST", path + "/keys",
                ["suite": "P256_SHA256_AES256GCM", "public_key": .string(publicKey)]))
        keyID = added["key_id"]
        let challenge = added.json["challenge"]?.objectValue ?? [:]
        let proof = try opener().proof(forChallenge: Self.envelopeText(challenge), now: Self.now)
        try await expect(
            200, stage.call("product", "POST", path + "/keys/\(keyID)/confirm", ["proof": .string(proof)]))
    }

    /// What the app shows for an envelope; throws when it cannot be opened here.
    func read(_ envelope: String) throws -> JSONObject {
        let opening = try opener().open(envelope, now: Self.now)
        guard case .object(let content) = try CanonicalJSON.read(opening.message.content) else {
            throw CommandFailure("the opened content is not an object")
        }
        return content
    }

    private func opener() throws -> SealedPushOpener {
        try SealedPushOpener(
            app: Self.app, device: device, keys: [DeviceKey(keyID: keyID, privateKey: privateKey)],
            origins: [origin], seen: seen)
    }

    private static var now: UInt64 { UInt64(Date().timeIntervalSince1970) }

    /// The envelope's one spelling; an answer carries it as an object.
    private static func envelopeText(_ object: JSONObject) -> String {
        func text(_ key: String) -> String { object[key]?.stringValue ?? "" }
        let expiry = object["exp"]?.integerValue ?? 0
        return
            #"{"v":1,"s":"\#(text("s"))","kid":"\#(text("kid"))","mid":"\#(text("mid"))","exp":\#(expiry),"ct":"\#(text("ct"))"}"#
    }

    @discardableResult
    private func expect(_ status: Int, _ response: DemoStage.Response) throws -> DemoStage.Response {
        guard response.status == status else {
            throw CommandFailure(
                "the gateway answered \(response.status): \(response["title"]) \(response["detail"])")
        }
        return response
    }
}
