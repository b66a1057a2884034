import CanonicalJSON
import CourierModel
import DeliveryRelay
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import SealedPush
import Testing

/// A device that Expo's push service delivers to, from its registration to its dead token.
@Suite struct ExpoDeviceTests {
    private static let token = "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"
    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    @discardableResult
    private func register(
        _ platform: String, token: String = Self.token, by provider: JSONValue? = "expo",
        app: String = "no.getdrop.app"
    ) async throws -> GatewayHarness.Reply {
        if try await gate.call("auditor", "GET", "/v1/recipients/u_1").status == 404 {
            try await gate.register("u_1", device: nil)
        }
        var body: JSONObject = [
            "platform": .string(platform), "app": .string(app), "token": .string(token), "region": "DE",
            "time_zone": "Europe/Berlin", "os_permission": "granted",
        ]
        body["provider"] = provider
        let reply = try await gate.call("product", "PUT", "/v1/recipients/u_1/devices/d_1", body)
        gate.clock.advance(seconds: 1)
        return reply
    }

    private func held() async throws -> JSONValue {
        let reply = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        return try #require(reply.json["devices"]?.arrayValue?.first)
    }

    private func send(_ type: String, _ id: String = "a") async throws -> String {
        let (caller, body) =
            type == "promo.offer"
            ? ("marketing", try await gate.promo(id, to: "u_1"))
            : ("payments", GatewayHarness.remittance(id, to: "u_1"))
        let reply = try await gate.call(caller, "POST", "/v1/sends", body)
        try #require(reply.status == 202, "\(reply.json)")
        return try #require(reply["send_id"])
    }

    /// What the courier reads of what the gateway writes.
    private func order(_ delivery: Delivery) throws -> DeliveryOrder {
        try DeliveryOrder(CanonicalJSON.read(DeliveryDocument.write(delivery)))
    }

    private func deviceEntries() throws -> [JSONValue] {
        try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map { try CanonicalJSON.read($0.bytes) }
            .filter { $0["kind"] == "device" }
    }

    @Test(arguments: ["ios", "android"])
    func `the provider is in the entry and in what is held, and the platform's own is in neither`(
        platform: String
    ) async throws {
        #expect(try await register(platform).status == 200)
        #expect(try await held()["provider"] == "expo")
        #expect(try await held()["platform"]?.stringValue == platform)
        #expect(try await held()["token"]?.stringValue == Self.token)
        #expect(try deviceEntries().map { $0["provider"] } == ["expo"])
        #expect(try await register(platform, token: "00aa", by: nil).status == 200)
        #expect(try await held()["provider"] == nil)
        #expect(try deviceEntries().map { $0["provider"] } == ["expo", nil])
        #expect(try deviceEntries().last?["token_changed"] == true)
    }

    @Test func `a token of Expo's without its provider is 422 with what to do, and changes nothing`()
        async throws
    {
        for platform in ["ios", "android"] {
            let reply = try await register(platform, by: nil)
            #expect(reply.status == 422)
            #expect("\(reply.json)".contains("add `provider` with the value `expo`"), "\(reply.json)")
        }
        let other = try await register("ios", token: "00aa")
        #expect(other.status == 422 && "\(other.json)".contains("leave `provider` out"), "\(other.json)")
        #expect(try deviceEntries().isEmpty)
    }

    @Test(arguments: ["ios", "android"], ["sealed", "generic", "full"])
    func `the courier reads an order for Expo, and the phone opens what Expo makes of it`(
        platform: String, form: String
    ) async throws {
        try await register(platform)
        var opener = try DeviceKeyPair().opener(
            keyID: String(repeating: "0", count: 32), app: "no.getdrop.app", device: "d_1",
            origin: gate.origin.publicKey.rawBytes)
        if form == "sealed" {
            let (pair, key) = try await gate.addKey("u_1")
            opener = try pair.opener(
                keyID: key, app: "no.getdrop.app", device: "d_1", origin: gate.origin.publicKey.rawBytes)
        }
        if form == "full" { try await gate.consent("u_1") }
        _ = try await send(form == "full" ? "promo.offer" : "transaction.remittance_sent")
        gate.clock.advance(seconds: 30)
        let delivery = try #require(try await gate.claim().first)
        let order = try order(delivery)
        #expect(order.provider == .expo && order.platform?.rawValue == platform)
        #expect(order.token == Self.token && order.headers == [:] && order.app == "no.getdrop.app")
        #expect(CanonicalJSON.write(order.body).count <= 4_096 - 256)
        // What is left at the hand-over, in seconds.
        let left = delivery.statedExpiry.milliseconds - delivery.handedOverAt.milliseconds
        #expect(order.body["ttl"] == .integer((left + 999) / 1000))

        // Expo puts `data` into the member `body` of an iPhone's push, and as a text into that of Android's data.
        let data = try #require(order.body["data"]?.objectValue)
        let texts = Dictionary(uniqueKeysWithValues: data.map { ($0.key, $0.value.stringValue ?? "") })
        let now = UInt64(gate.clock.now().seconds)
        let push =
            platform == "ios"
            ? try opener.verify(apns: ["body": texts as [AnyHashable: Any]], now: now)
            : try opener.verify(fcm: texts, now: now)
        switch push {
        case .sealed(.opened(let message)):
            #expect(form == "sealed")
            let content = try CanonicalJSON.read(message.content)
            #expect(content["type"] == "transaction.remittance_sent")
            #expect((content["android_channel"] != nil) == (platform == "android"))
        case .open(let shown, isNew: true):
            #expect(shown.type == (form == "full" ? "promo.offer" : nil) && form != "sealed")
            #expect(order.body["title"]?.stringValue == shown.title)
            #expect(order.body["body"]?.stringValue == shown.body)
        default: Issue.record("\(push)")
        }
    }

    @Test func `an order for the platform's own service names no provider`() async throws {
        try await register("ios", token: "00aa", by: nil)
        _ = try await send("transaction.remittance_sent")
        let order = try order(try #require(try await gate.claim().first))
        #expect(order.provider == nil && order.body["aps"] != nil)
    }

    /// A body of Apple's is none of Expo's, and a text that was not composed yet is composed for whom it goes to.
    @Test(arguments: ["provider", "platform", "app"])
    func `what is composed for one push service is not handed to another`(changed: String) async throws {
        try await register("ios", token: "00aa", by: nil)
        let composed = try await send("transaction.remittance_sent")
        let delivery = try #require(try await gate.claim().first)
        let later = gate.clock.now().advanced(bySeconds: 5)
        try await gate.gateway.report(delivery.message, .notWritten("connection refused"), retryAt: later)
        switch changed {
        case "provider": try await register("ios")
        case "platform": try await register("android", token: "c1:x", by: nil)
        default: try await register("ios", token: "00aa", by: nil, app: "no.getdrop.other")
        }
        gate.clock.advance(seconds: 10)
        #expect(try await gate.claim().isEmpty)
        let told = try await gate.call("payments", "GET", "/v1/sends/\(composed)")
        let last = told.json["events"]?.arrayValue?.last
        #expect(last?["reason"] == "destination_removed", "\(told.json)")
        // The same device as before withdraws nothing.
        _ = try await send("transaction.remittance_sent", "b")
        let next = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            next.message, .notWritten("connection refused"), retryAt: gate.clock.now().advanced(bySeconds: 5))
        switch changed {
        case "provider": try await register("ios", token: "ExponentPushToken[new]")
        case "platform": try await register("android", token: "c1:y", by: nil)
        default: try await register("ios", token: "00bb", by: nil, app: "no.getdrop.other")
        }
        gate.clock.advance(seconds: 10)
        #expect(try await gate.claim().map(\.message) == [next.message])
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        let objections = try EvidenceFoldTests.objections(to: entries, under: gate.policy)
        #expect(objections.isEmpty, "\(objections)")
    }

    /// A receipt of Expo's comes a quarter of an hour after its push, and tells the time of that.
    @Test(arguments: [false, true])
    func `a receipt DeviceNotRegistered takes the token out, unless it was registered after the push`(
        again: Bool
    ) async throws {
        try await register("android")
        let send = try await send("transaction.remittance_sent")
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 200, byProvider: true), retryAt: nil)
        let sentAt = gate.clock.now()
        gate.clock.advance(seconds: 60)
        if again { try await register("android") }
        gate.clock.advance(seconds: 900)
        // As `ExpoReceipts` has the courier say it.
        let report = InboundReport(
            .receipt(DeliveryReference(try order(delivery)), .tokenGone, reason: "DeviceNotRegistered"),
            key: "expo/main/ticket-1", at: sentAt)
        let body = try #require(report.body(firstAt: sentAt).objectValue)
        #expect(report.path == "/v1/receipts")
        let first = try await gate.call("product", "POST", report.path, body)
        #expect(first.status == 200, "\(first.json)")
        #expect(try await held()["active"] == .boolean(again))
        #expect(try await held()["provider"] == "expo")
        // Told twice, it is the same receipt.
        let second = try await gate.call("product", "POST", report.path, body)
        #expect(second.status == 200 && second.json["replayed"] == true, "\(second.json)")
        let told = try await gate.call("payments", "GET", "/v1/sends/\(send)")
        let events = try #require(told.json["events"]?.arrayValue)
        #expect(events.last?["event"] == "token_gone" && events.last?["reason"] == "DeviceNotRegistered")
        // The next send has nowhere to go, and the app that registers again is reached again.
        let next = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("b", to: "u_1"))
        #expect((next.status == 202) == again, "\(next.json)")
        try await register("android", token: "ExponentPushToken[new]")
        #expect(try await held()["active"] == true)
        let objections = try EvidenceFoldTests.objections(
            to: try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes), under: gate.policy
        )
        #expect(objections.isEmpty, "\(objections)")
    }
}
