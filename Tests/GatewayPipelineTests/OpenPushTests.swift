import CanonicalJSON
import Crypto
import Foundation
import GateSteps
import GateVocabulary
import OpenSSLCrypto
import SealedPush
import Testing

/// Every push that leaves unsealed carries the origin's signature over what is shown, and a phone verifies it.
@Suite struct OpenPushTests {
    private func opener(_ gate: GatewayHarness, device: String) throws -> SealedPushOpener {
        try DeviceKeyPair().opener(
            keyID: String(repeating: "0", count: 32), app: "no.getdrop.app", device: device,
            origin: gate.origin.publicKey.rawBytes)
    }

    /// The phone's view of a body: `userInfo` of an iPhone, `data` of an Android phone.
    private func verify(
        _ delivery: Delivery, _ opener: SealedPushOpener, _ gate: GatewayHarness
    ) throws -> VerifiedPush {
        let json = try #require(
            try JSONSerialization.jsonObject(with: Data(delivery.body)) as? [String: Any])
        let now = UInt64(gate.clock.now().seconds)
        if let message = json["message"] as? [String: Any] {
            return try opener.verify(fcm: try #require(message["data"] as? [String: String]), now: now)
        }
        return try opener.verify(apns: json, now: now)
    }

    @Test(arguments: ["ios", "android"], ["full", "generic"])
    func `a push in the clear verifies on the phone it was sent to, and on no other`(
        platform: String, form: String
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", device: nil)
        let registered = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_1",
            [
                "platform": .string(platform), "app": "no.getdrop.app", "token": "00aa", "region": "DE",
                "time_zone": "Europe/Berlin", "os_permission": "granted",
            ])
        try #require(registered.status == 200, "\(registered.json)")
        if form == "full" {
            try await gate.consent("u_1")
            let sent = try await gate.call(
                "marketing", "POST", "/v1/sends", try await gate.promo("a", to: "u_1"))
            try #require(sent.status == 202, "\(sent.json)")
        } else {
            // Sealed by its page, and the phone has no key.
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
            try #require(sent.status == 202, "\(sent.json)")
        }
        let delivery = try #require(try await gate.claim().first)
        let push = try verify(delivery, try opener(gate, device: "d_1"), gate)
        guard case .open(let shown, isNew: true) = push else {
            Issue.record("\(push)")
            return
        }
        #expect(!shown.title.isEmpty && !shown.body.isEmpty)
        #expect((shown.type == "promo.offer") == (form == "full"))
        #expect((shown.unsubscribe != nil) == (form == "full"))
        #expect(shown.messageID == delivery.message.uuidText)
        #expect(throws: SealedPushError.self) {
            try verify(delivery, try opener(gate, device: "d_2"), gate)
        }
        // And the body says so to the system of an iPhone: its extension is asked first.
        if platform == "ios" {
            let body = try CanonicalJSON.readCanonical(delivery.body)
            #expect(body["aps"]?["mutable-content"] == 1)
        }
    }
}
