import Foundation
import Testing

/// The real binary, driven from outside by code that shares nothing with it.
///
/// Each test starts processes of its own in a folder of its own, so they run side by side. The tests are synchronous
/// functions; see ``ChildProcess``.
@Suite struct EndToEnd {}

/// Tests that need the whole machine: kills under load, floods and full disks. They run one after another, once
/// everything else has ended; the Makefile starts them by this name.
@Suite(.serialized) struct Alone {}

extension EndToEnd {
    /// What the other tests stand on. Without it they would fail one by one with the same words.
    @Suite struct Ground {
        @Test(arguments: [
            Machine.sendgate, Machine.python, Machine.schemathesis, Machine.verifyTiles, Machine.promtool,
            Machine.prometheus,
        ])
        func `the binary and every foreign peer are there`(program: String) {
            #expect(
                FileManager.default.isExecutableFile(atPath: program),
                "`\(program)` is missing: run `make test`, or set SENDGATE_BINARY and SENDGATE_PEERS")
        }
    }
}

/// Runs a part of the test that leans on several others, so that the first failure names the place.
func step<Result>(_ name: String, _ body: () throws -> Result) throws -> Result {
    do {
        return try body()
    } catch {
        throw HarnessError("\(name): \(error)")
    }
}

/// Bodies that tests send.
enum Sample {
    /// RFC 3339, by the machine's clock.
    static func time(secondsAgo: Double) -> String {
        ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -secondsAgo))
    }

    static let recipient = """
        {"region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin", "age": "adult"}
        """
    static let device = """
        {"platform": "ios", "app": "no.getdrop.app", "token": "00aa", "os_permission": "granted"}
        """

    /// - Parameter channel: Push when `nil`.
    static func login(
        _ id: String, to user: String = "u_1", channel: String? = nil, more: String = ""
    ) -> String {
        let more = more + (channel.map { #", "channel": "\#($0)""# } ?? "")
        return """
            {"id": "\(id)", "type": "security.new_login", "recipient": {"user": "\(user)"}\(more), "params": {"login_id": \
            "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "device_name": "a laptop", "at": "2026-11-21T05:00:00Z"}}
            """
    }

    static func remittance(_ id: String, to user: String = "u_1", recipientName: String = "Ahmad Karimi")
        -> String
    {
        """
        {"id": "\(id)", "type": "transaction.remittance_sent", "recipient": {"user": "\(user)"}, "params": {"amount": \
        {"minor": 500000, "currency": "NOK"}, "recipient_name": "\(recipientName)", "transaction_id": \
        "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"}}
        """
    }
}

extension RawConnection {
    /// Sends what the reference of a type has as its example.
    ///
    /// - Parameter more: Other members of the body.
    func sendExample(
        of type: String, as id: String, to user: String = "u_1", with more: [String: String] = [:]
    ) throws -> Reply {
        let page = try request("GET", "/v1/types/\(type)")
        let read = try JSONSerialization.jsonObject(with: Data(page.body)) as? [String: Any]
        guard var body = read?["example"] as? [String: Any] else {
            throw HarnessError("`\(type)` has no example: \(page)")
        }
        body["id"] = id
        body["recipient"] = ["user": user]
        body.merge(more) { _, new in new }
        let bytes = try JSONSerialization.data(withJSONObject: body)
        return try request("POST", "/v1/sends", String(decoding: bytes, as: UTF8.self))
    }
}

extension GateProcess {
    /// Registers `u_1` with one iPhone.
    func registerSomebody() throws {
        let connection = try connect()
        for (target, body) in [
            ("/v1/recipients/u_1", Sample.recipient), ("/v1/recipients/u_1/devices/d_1", Sample.device),
        ] {
            let reply = try connection.request("PUT", target, body)
            guard reply.status == 200 else { throw HarnessError("PUT \(target): \(reply)") }
        }
    }

    /// Registers a number of `u_1`'s as `n_1`, and a consent to offers by text there.
    func agreeToTexts(at number: String, in scratch: Scratch) throws {
        let connection = try connect()
        let address = try connection.request(
            "PUT", "/v1/recipients/u_1/addresses/n_1",
            #"{"kind": "sms", "value": "\#(number)", "verified_at": "\#(Sample.time(secondsAgo: 30))"}"#)
        try #require(address.status == 200, "\(address)")
        let digest = try Finished.run(
            ["sha256sum", "\(Machine.policies)/notices/promo.3.en.txt"], in: scratch, within: 30
        ).output.prefix(64)
        let consent = try connection.request(
            "POST", "/v1/recipients/u_1/consents",
            """
            {"id": "c_1", "purpose": "marketing", "channel": "sms", "address": "n_1", "state": "given", \
            "event_time": "\(Sample.time(secondsAgo: 20))", "method": "in_app_toggle", "jurisdiction": "DE", \
            "notice": {"id": "promo", "version": "3", "language": "en", "sha256": "\(digest)"}}
            """)
        try #require(consent.status == 200, "\(consent)")
    }

    /// Asserts that it still does its work for others.
    func stillAnswers(_ id: String) throws -> Bool {
        try connect().request("POST", "/v1/sends", Sample.login(id)).status == 202
    }

    /// Resident memory, in bytes.
    var residentByteCount: Int {
        get throws {
            let status = try String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
            return try #require(Int(line.split { " \t".contains($0) }[1])) * 1024
        }
    }
}
