import CanonicalJSON
import GateRecords
import GateVocabulary
import Testing

@testable import WireProtocol

@Suite struct SendBodyTests {
    private func read(_ text: String) -> Result<SendRequest, BodyError> { SendRequest.read(Array(text.utf8)) }

    private func violations(_ text: String) -> [String] {
        guard case .failure(.invalid(let violations)) = read(text) else { return [] }
        return violations.map(\.description)
    }

    @Test func `the reference's own send is read, every member of it`() throws {
        let text = """
            {"id": "rem-8812736-sent", "type": "transaction.remittance_sent",
             "recipient": {"user": "u_42", "device": "d_1"},
             "params": {"amount": {"minor": 500000, "currency": "NOK"}, "recipient_name": "Ahmad Karimi",
                        "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"},
             "channel": "push", "fallback_for": "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11",
             "critical": false, "ttl_seconds": 3600, "collapse_key": "k", "deep_link": "drop://send", "locale": "nb"}
            """
        let send = try read(text).get()
        #expect(
            send
                == SendRequest(
                    id: RequestID("rem-8812736-sent"), type: TypeID("transaction.remittance_sent"),
                    user: UserID("u_42"), destination: DestinationID("d_1"),
                    params: [
                        "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                        "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
                    ],
                    channel: .push, fallbackFor: Samples.sendID, critical: false, ttlSeconds: 3600,
                    collapseKey: "k", deepLink: "drop://send", locale: "nb"))
    }

    @Test func `what a send leaves out has its documented default`() throws {
        let send = try read(#"{"id":"1","type":"t","recipient":{"user":"u"}}"#).get()
        #expect(send == SendRequest(id: RequestID("1"), type: TypeID("t"), user: UserID("u")))
        let sms = try read(#"{"id":"1","type":"t","channel":"sms","recipient":{"user":"u","address":"a"}}"#)
            .get()
        #expect(sms.destination == DestinationID("a"))
    }

    @Test func `every violation is told at once, with what would be right`() {
        let found = violations(
            #"{"type":7,"recipient":{"device":"d","address":"a"},"chanel":"push","ttl_seconds":0,"critical":"yes","params":{"a\u0001":1}}"#
        )
        #expect(
            found.map { String($0.split(separator: "`").last ?? "") }.sorted()
                == [
                    "/chanel", "/critical", "/id", "/params/a\u{1}", "/recipient", "/recipient/user",
                    "/ttl_seconds",
                    "/type",
                ])
        #expect(found.contains { $0.contains("did you mean `channel`?") })
        #expect(found.contains { $0.contains("expected an integer from 1 to 2419200") })
        #expect(found.contains { $0.contains("expected true or false, found a string") })
    }

    @Test func `a stranger's unknown member is answered with a short quote`() {
        let key = String(repeating: "k", count: 5_000)
        let found = violations(#"{"id":"1","type":"t","recipient":{"user":"u"},"\#(key)":1}"#)
        #expect(found.count == 1)
        #expect(found[0].utf8.count < 1_000)
    }

    @Test func `order and spacing make no difference to what a send is, any value does`() throws {
        let one = Array(#"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":60}"#.utf8)
        let two = Array(
            "{ \"ttl_seconds\": 60,\n\"recipient\": {\"user\": \"\\u0075\"}, \"type\": \"t\", \"id\": \"1\"}"
                .utf8)
        let three = Array(#"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":61}"#.utf8)
        let contents = try [one, two, three].map {
            try SendRequest.readWithContent($0).get().canonicalContent
        }
        #expect(contents[0] == contents[1])
        #expect(contents[0] != contents[2])
        #expect(
            contents[0] == Array(#"{"id":"1","recipient":{"user":"u"},"ttl_seconds":60,"type":"t"}"#.utf8))
    }

    // MARK: Hostile bytes

    @Test(arguments: UInt8(0)...0x1F)
    func `a control character in a text is refused, raw and escaped`(_ byte: UInt8) {
        var raw = Array(#"{"id":"a"#.utf8)
        raw.append(byte)
        raw += Array(#"","type":"t","recipient":{"user":"u"}}"#.utf8)
        guard case .failure(.malformed) = SendRequest.read(raw) else {
            Issue.record("a raw control character was read")
            return
        }
        let escaped =
            #"{"id":"a\u00\#(byte < 16 ? "0" : "")\#(String(byte, radix: 16))","type":"t","recipient":{"user":"u"}}"#
        guard case .failure = read(escaped) else {
            Issue.record("an escaped control character was read")
            return
        }
    }

    @Test(arguments: [
        #"{"id":"\ud800","type":"t","recipient":{"user":"u"}}"#,
        #"{"id":"\udc00\ud800","type":"t","recipient":{"user":"u"}}"#,
        #"{"id":"1","id":"2","type":"t","recipient":{"user":"u"}}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u","user":"v"}}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},"params":{"a":{"b":{"c":1,"\u0063":2}}}}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":60.0}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":6e1}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":9007199254740992}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":060}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},"ttl_seconds":NaN}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"}}{}"#,
        #"{"id":"1","type":"t","recipient":{"user":"u"},}"#,
        #"{'id':'1'}"#, #"{"id":"1" /* why */}"#, "\u{FEFF}{}", "nul", "{", #"{"id":"#, "[", "\"",
        #"{"id":"a\u0000b","type":"t","recipient":{"user":"u"}}"#,
    ])
    func `what is not JSON as this gateway reads it says at which byte`(_ text: String) {
        guard case .failure(.malformed(let error)) = read(text) else {
            Issue.record("\(text) was read")
            return
        }
        let problem = Problem(.malformed(error))
        #expect(problem.status == 400)
        #expect(problem.detail?.isEmpty == false)
    }

    @Test(
        arguments: [
            [0xFF, 0xFE, 0x7B, 0x00], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
            [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], [0x00], [0x80],
        ] as [[UInt8]])
    func `bytes that are not UTF-8 are refused`(_ bytes: [UInt8]) {
        guard case .failure(.malformed) = SendRequest.read(bytes) else {
            Issue.record("\(bytes) was read")
            return
        }
    }

    @Test func `ten thousand brackets are refused without descending into them`() {
        for bracket in ["[", #"{"a":"#] {
            let text = String(repeating: bracket, count: 10_000)
            guard case .failure(.malformed) = read(text) else {
                Issue.record("ten thousand \(bracket) were read")
                return
            }
        }
    }

    @Test func `a body of 64 KiB is read, one byte more is not`() throws {
        let start = #"{"id":"1","type":"t","recipient":{"user":"u"}}"#
        let full = start + String(repeating: " ", count: WireLimits.bodyByteCountMax - start.utf8.count)
        _ = try read(full).get()
        #expect(
            read(full + " ")
                == .failure(.tooLarge(byteCount: 65_537, byteCountMax: WireLimits.bodyByteCountMax)))
        #expect(Problem(.tooLarge(byteCount: 65_537, byteCountMax: 65_536)).status == 413)
    }

    @Test(arguments: ["", "   ", "null", "[]", "\"x\"", "1", "true"])
    func `a body that is no object is refused`(_ text: String) {
        guard case .failure = read(text) else {
            Issue.record("\(text) was read")
            return
        }
    }

    @Test func `a thousand violations make a short answer that says how many there were`() throws {
        let members = (0..<900).map { #""k\#($0)":1"# }.joined(separator: ",")
        guard case .failure(let error) = read("{\(members)}") else {
            Issue.record("nine hundred unknown members were read")
            return
        }
        let problem = Problem(error)
        #expect(problem.violations.count == 903)
        #expect(problem.json["violations"]?.arrayValue?.count == WireLimits.violationCountMax)
        #expect(problem.json["detail"] == "the first 100 of 903 violations are listed")
        #expect(problem.answer.body.count < 65_536)
    }
}
