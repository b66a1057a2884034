import CanonicalJSON
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Testing

/// One push token belongs to one device of one person: the latest registration takes it.
@Suite struct PushTokenTests {
    private let gate: GatewayHarness

    init() throws {
        gate = try GatewayHarness()
    }

    private func device(
        _ id: String, of user: String, token: String, platform: String = "ios"
    ) async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/devices/\(id)",
            [
                "platform": .string(platform), "app": "no.getdrop.app", "token": .string(token),
                "region": "DE", "time_zone": "Europe/Berlin", "os_permission": "granted",
            ])
        try #require(reply.status == 200, "\(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    /// The devices of a person that are active.
    private func active(_ user: String) async throws -> [String] {
        let held = try await gate.call("auditor", "GET", "/v1/recipients/\(user)")
        return (held.json["devices"]?.arrayValue ?? []).compactMap(\.objectValue)
            .filter { $0["active"] == true }.compactMap { $0["device"]?.stringValue }.sorted()
    }

    private func alert(_ id: String, to user: String) async throws -> GatewayHarness.Reply {
        try await gate.call(
            "security", "POST", "/v1/sends",
            gate.example("security.new_login", id, to: user, as: "security"))
    }

    private func entries(_ action: String) throws -> [JSONValue] {
        try gate.store.read { try $0.entries(from: 0, limit: 1000) }.map { try CanonicalJSON.read($0.bytes) }
            .filter { $0["kind"] == "device" && $0["action"]?.stringValue == action }
    }

    @Test func `two devices of one person with one token are one, and a send goes out once`() async throws {
        try await gate.register("u_1", device: nil)
        try await device("d_1", of: "u_1", token: "00aa")
        try await device("d_2", of: "u_1", token: "00aa")
        #expect(try await active("u_1") == ["d_2"])
        #expect(try await alert("s1", to: "u_1").status == 202)
        #expect(try await gate.claim(.security).map(\.token) == ["00aa"])
        #expect(try entries("token_taken").count == 1)
        // The device that is not there any more keeps no token, in the store neither.
        let person = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
        let devices = try gate.store.read { try $0.devices(of: person.id) }
        #expect(Set(devices.map { "\($0.id) \($0.token)" }) == ["d_1 ", "d_2 00aa"])
    }

    @Test func `who signs in on somebody's phone gets its notices, and who signed out gets none`()
        async throws
    {
        try await gate.register("u_1", device: nil)
        try await gate.register("u_2", device: nil)
        try await device("d_1", of: "u_1", token: "00aa")
        try #require(try await alert("waits", to: "u_1").status == 202)
        try await device("d_9", of: "u_2", token: "00AA")
        // What waited for the first is not handed to the second.
        #expect(try await gate.claim(.security).isEmpty)
        let late = try await alert("late", to: "u_1")
        #expect(
            late["reason"] == "no_destination" && late["detail"] == "destination_inactive", "\(late.json)")
        #expect(try await alert("own", to: "u_2").status == 202)
        #expect(try await gate.claim(.security).count == 1)
        let first = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
        let taken = try entries("token_taken")
        #expect(taken.map { $0["subject"]?.stringValue } == [first.id.hexadecimal])
        #expect(taken.first?["caller"] == "product")
        // And back again.
        try await device("d_1", of: "u_1", token: "00aa")
        #expect(try await active("u_1") == ["d_1"])
        #expect(try await active("u_2") == [])
        #expect(try await alert("back", to: "u_1").status == 202)
    }

    @Test func `a device that registers again keeps its token, and another token takes none`() async throws {
        try await gate.register("u_1", device: nil)
        try await device("d_1", of: "u_1", token: "00aa")
        try await device("d_1", of: "u_1", token: "00aa")
        try await device("d_1", of: "u_1", token: "00bb")
        // The token it had before is free.
        try await device("d_2", of: "u_1", token: "00aa")
        // FCM tells tokens apart by case.
        try await device("d_3", of: "u_1", token: "fcm:Aa", platform: "android")
        try await device("d_4", of: "u_1", token: "fcm:AA", platform: "android")
        #expect(try await active("u_1") == ["d_1", "d_2", "d_3", "d_4"])
        #expect(try entries("token_taken").isEmpty)
    }

    @Test(arguments: [
        ("ios", "dA8PR768+P"), ("ios", "ExponentPushToken[aa]"), ("ios", "00a"), ("ios", ""),
        ("ios", "00 aa"),
        ("ios", "<740f4707>"), ("ios", "fcm:Aa"), ("android", "a b"), ("android", "ExponentPushToken[aa]"),
        ("android", "a=b"), ("ios", String(repeating: "a", count: 202)),
    ])
    func `a token that its platform does not make is refused`(_ platform: String, _ token: String)
        async throws
    {
        try await gate.register("u_1", device: nil)
        let answer = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_1",
            [
                "platform": .string(platform), "app": "no.getdrop.app", "token": .string(token),
                "region": "DE",
                "os_permission": "granted",
            ])
        #expect(answer.status == 422, "\(answer.json)")
    }

    @Test func `a token of Apple's is kept and handed over in one spelling`() async throws {
        try await gate.register("u_1", device: nil)
        try await device("d_1", of: "u_1", token: "00AAbb")
        #expect(try await alert("s1", to: "u_1").status == 202)
        #expect(try await gate.claim(.security).map(\.token) == ["00aabb"])
    }

    @Test func `a message whose hand-over is in doubt is not tried again at a token that moved`() async throws
    {
        try await gate.register("u_1", device: nil)
        try await gate.register("u_2", device: nil)
        try await device("d_1", of: "u_1", token: "00aa")
        try #require(try await alert("s1", to: "u_1").status == 202)
        let first = try #require(try await gate.claim(.security).first)
        try await gate.gateway.report(
            first.message, .ambiguous("cut", mayRepeat: true),
            retryAt: gate.clock.now().advanced(bySeconds: 5))
        try await device("d_1", of: "u_2", token: "00aa")
        gate.clock.advance(seconds: 10)
        #expect(try await gate.claim(.security).isEmpty)
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
    }
}
