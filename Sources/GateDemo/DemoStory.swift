import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import WireProtocol

/// The scenes, in order. Each says what happens, does it, and checks that it happened.
package final class DemoStory {
    private let stage: DemoStage
    private(set) var failureCount = 0
    private let startedAt = Date()

    init(stage: DemoStage) { self.stage = stage }

    /// Tells all of it, with the processes in a folder of its own.
    ///
    /// - Parameters:
    ///   - policies: The folder of the bundle to decide by.
    ///   - tools: What delivers; without them the story ends at the gateway's socket.
    ///   - keepsFolder: Whether the folder stays.
    package static func tell(policies: String, tools: DemoTools?, keepsFolder: Bool) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "sendgate-demo-\(ProcessInfo.processInfo.processIdentifier)").path
        let stage = try DemoStage(folder: folder, policies: policies, tools: tools)
        defer {
            stage.strike()
            if keepsFolder {
                Terminal.note("the folder is still there: \(folder)")
            } else {
                try? FileManager.default.removeItem(atPath: folder)
            }
        }
        let story = DemoStory(stage: stage)
        try await story.tell()
        if story.failureCount > 0 {
            throw CommandFailure("\(story.failureCount) scenes did not end as they should have")
        }
    }

    func tell() async throws {
        title("A gate in front of every notification")
        try await stage.startDelivery()
        try await stage.startGateway()
        let origin = try await originKey()
        let iphone = try DemoPhone(user: "anna", device: "iphone", platform: "ios", origin: origin)
        let android = try DemoPhone(user: "bojan", device: "pixel", platform: "android", origin: origin)
        try await enrol(iphone, region: "DE")
        try await enrol(android, region: "NO")
        say("gateway, delivery layer, an iPhone in Germany and an Android phone in Norway are up;")
        say("both phones proved that they hold the keys they registered")

        try await consent()
        try await withdrawnWhileWaiting()
        try await critical()
        try await smsFallback()
        try await sealed(iphone, android)
        try await retried()
        try await killed()
        try await audited()
        if let tools = stage.tools {
            let provider = try await delivered(iphone, by: tools)
            try await tokenGone(iphone, at: provider)
        }

        let seconds = Date().timeIntervalSince(startedAt)
        title("The end, after \(String(format: "%.1f", seconds)) seconds: \(failureCount) scenes failed")
    }

    // MARK: Scenes

    private func consent() async throws {
        title("1  A promo to Germany, before and after consent")
        let refused = try await send("marketing", promo("promo-1", to: "anna"))
        check(refused.status == 403 && refused["reason"] == "no_gdpr_consent", "refused: \(words(refused))")
        try await grantConsent("anna", id: "anna-promo")
        say("Anna opts in, in the app, to a text whose digest is on record")
        let accepted = try await send("marketing", promo("promo-2", to: "anna"))
        check(accepted.status == 202 && accepted["outcome"] == "forward", "it goes: \(words(accepted))")
        let delivered = try await stage.delivery(of: accepted["send_id"])
        check(delivered != nil, "the delivery layer has it")
    }

    private func withdrawnWhileWaiting() async throws {
        title("2  Consent is withdrawn while the delivery layer is down")
        try await grantConsent("bojan", id: "bojan-promo")
        stage.stopDelivery()
        let waiting = try await send("marketing", promo("promo-3", to: "bojan"))
        check(waiting.status == 202, "accepted, and waiting: \(words(waiting))")
        let withdrawn = try await stage.call(
            "product", "POST", "/v1/recipients/bojan/consents/bojan-promo/withdraw")
        check(withdrawn.status == 200, "Bojan changes his mind")
        check(
            try await isTakenOut(waiting["send_id"]),
            "the waiting promo is taken out, and its caller can read why")
        try await stage.startDelivery()
        let probe = try await send("payments", remittance("probe-1", to: "bojan"))
        _ = try await stage.delivery(of: probe["send_id"])
        check(
            !stage.deliveries().contains { $0["send_id"]?.stringValue == waiting["send_id"] },
            "the delivery layer is back, and never sees it")
    }

    /// Whether a send stops waiting because it was withdrawn. A hand-over that was just being tried must fail first.
    private func isTakenOut(_ send: String) async throws -> Bool {
        try await status(of: send, from: "marketing", with: "withdrawn")?.json["waiting"] == []
    }

    /// Waits until an event is on record of a send.
    ///
    /// - Returns: The send as its caller reads it then; `nil` when the event does not come within ten seconds.
    private func status(
        of send: String, from caller: String, with event: String
    ) async throws -> DemoStage.Response? {
        let deadline = Date().addingTimeInterval(10)
        while Date() < deadline {
            let status = try await stage.call(caller, "GET", "/v1/sends/\(send)")
            let events = status.json["events"]?.arrayValue?.compactMap(\.objectValue) ?? []
            if events.contains(where: { $0["event"]?.stringValue == event }) { return status }
            try await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }

    private func critical() async throws {
        title("3  Who may break through Do Not Disturb")
        var alert: JSONObject = [
            "id": "alert-1", "type": "suspicious_login", "recipient": ["user": "anna"], "critical": true,
            "params": [
                "login_id": .string(UUID().uuidString.lowercased()), "device_name": "unknown laptop",
                "at": .string(Self.now()),
            ],
        ]
        let accepted = try await send("security", alert)
        check(accepted.status == 202, "security, for a listed type: \(words(accepted))")
        let delivered = try await stage.delivery(of: accepted["send_id"])
        let level = delivered?["body"]?.objectValue?["aps"]?.objectValue?["interruption-level"]?.stringValue
        check(level == "critical", "the iPhone is asked for interruption level `\(level ?? "nothing")`")
        alert = promo("promo-4", to: "anna")
        alert["critical"] = true
        let refused = try await send("marketing", alert)
        check(
            refused.status == 403 && refused["reason"] == "critical_not_permitted",
            "marketing asks for the same: \(words(refused))")
    }

    private func smsFallback() async throws {
        title("4  Push consent is not SMS consent")
        _ = try await stage.call(
            "product", "PUT", "/v1/recipients/anna/addresses/mobile",
            ["kind": "sms", "value": "+4915100000000", "verified_at": .string(Self.now())])
        let push = try await send("marketing", promo("promo-5", to: "anna"))
        var fallback = promo("promo-5-sms", to: "anna")
        fallback["channel"] = "sms"
        fallback["fallback_for"] = .string(push["send_id"])
        let refused = try await send("marketing", fallback)
        check(
            refused.status == 403 && refused["reason"] == "sms_fallback_forbidden",
            "a promo may not fall back to SMS: \(words(refused))")
    }

    private func sealed(_ iphone: DemoPhone, _ android: DemoPhone) async throws {
        title("5  What Apple and Google see, and what the phones open")
        for (phone, path) in [(iphone, ["sendgate"]), (android, ["message", "data", "sendgate"])] {
            let accepted = try await send("payments", remittance("rem-\(phone.device)", to: phone.user))
            guard let delivered = try await stage.delivery(of: accepted["send_id"]),
                let body = delivered["body"]?.objectValue
            else {
                check(false, "the remittance for \(phone.device) did not arrive")
                continue
            }
            var value: JSONValue? = .object(body)
            for step in path { value = value?.objectValue?[step] }
            let envelope = value?.stringValue ?? ""
            let content = try phone.read(envelope)
            let outside = String(decoding: CanonicalJSON.write(.object(body)), as: UTF8.self)
            sideBySide(
                phone.platform == "ios" ? "what Apple sees" : "what Google sees", outside,
                "what the phone opens",
                String(decoding: CanonicalJSON.write(.object(content)), as: UTF8.self))
            check(
                !outside.contains("Karimi") && !outside.contains("remittance"),
                "name, amount and kind are inside the seal only (\(body["aps"] == nil ? "Android" : "iPhone"))"
            )
        }
    }

    private func retried() async throws {
        title("6  A lost answer, and a retry")
        let first = try await send("payments", remittance("rem-retry", to: "anna"))
        let second = try await send("payments", remittance("rem-retry", to: "anna"))
        check(
            second.json["replayed"] == true && second["send_id"] == first["send_id"],
            "the same id gets the first answer again")
        _ = try await stage.delivery(of: first["send_id"])
        let count = stage.deliveries().count { $0["send_id"]?.stringValue == first["send_id"] }
        check(count == 1, "and one message arrived, not two")
    }

    private func killed() async throws {
        title("7  kill -9 in the middle of it")
        let acknowledged = Acknowledged()
        let socket = stage.gate + "/payments.sock"
        let producer = Task { await acknowledged.collect(from: socket) }
        while await acknowledged.count < 40 { try await Task.sleep(for: .milliseconds(5)) }
        stage.killGateway()
        _ = await producer.value
        let kept = await acknowledged.all
        say("killed after \(kept.count) acknowledged sends; started again on the same folder")
        try await stage.startGateway()
        var lost = 0
        for (send, trail) in kept {
            let status = try await stage.call("payments", "GET", "/v1/sends/\(send)")
            if status.status != 200 || status.json["trail"] != trail { lost += 1 }
        }
        check(lost == 0, "every acknowledged send is on record, each at the place its answer named")
        var undelivered = 0
        for (send, _) in kept where try await stage.delivery(of: send) == nil { undelivered += 1 }
        check(undelivered == 0, "and every one of them reached the delivery layer")
    }

    private func audited() async throws {
        title("8  The evidence, on a copy and without the gateway")
        let copy = stage.folder + "/copy"
        try await published()
        let key = copy + "/trail.pub"
        // What the relay records meanwhile is in tiles a moment before it is under the checkpoint.
        let deadline = Date().addingTimeInterval(10)
        var verified: (status: Int32, output: String)
        repeat {
            try? FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: stage.trail, toPath: copy)
            verified = try stage.command(["audit", "verify", copy, "--key", key])
        } while verified.status != 0 && Date() < deadline
        check(verified.status == 0, "audit verify: \(verified.output.split(separator: "\n").last ?? "")")
        let replayed = try stage.command(["audit", "replay", copy])
        check(replayed.status == 0, "audit replay: \(replayed.output.split(separator: "\n").last ?? "")")
        try flipOneByte(under: copy)
        let damaged = try stage.command(["audit", "verify", copy, "--key", key])
        check(
            damaged.status == 3,
            "one byte flipped, and named: \(damaged.output.split(separator: "\n").first { $0.contains("error") || $0.contains("entry") } ?? "")"
        )
    }

    private func delivered(_ phone: DemoPhone, by tools: DemoTools) async throws -> DemoProvider {
        title("9  The courier delivers, to a provider that checks every rule")
        stage.stopGateway()
        let provider = try await stage.startCourier(for: DemoPhone.app, tools)
        try await stage.startGateway()
        say("the courier has Apple's key and the gateway has none; a stand-in for Apple is on the loopback")
        let accepted = try await send("payments", remittance("rem-courier", to: phone.user))
        let taken = try await status(
            of: accepted["send_id"], from: "payments", with: "accepted_by_provider")
        guard taken != nil, let request = try provider.requests().last,
            let body = request["body"]?.stringValue,
            case .object(let outside) = try CanonicalJSON.read(Array(body.utf8)),
            let envelope = outside["sendgate"]?.stringValue
        else {
            check(false, "the provider did not take it")
            return provider
        }
        var headers = request["headers"]?.objectValue ?? [:]
        headers["authorization"] = "bearer …"
        sideBySide(
            "the request that Apple gets",
            String(decoding: CanonicalJSON.write(.object(headers)), as: UTF8.self),
            "what the phone opens",
            String(decoding: CanonicalJSON.write(.object(try phone.read(envelope))), as: UTF8.self))
        check(
            request["broken"] == .null,
            "no rule is broken: signed token, topic, push type, priority, expiration, id, size")
        check(!body.contains("Karimi"), "and Apple was told nothing")
        return provider
    }

    private func tokenGone(_ phone: DemoPhone, at provider: DemoProvider) async throws {
        title("10  A dead token, and the text in its place")
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        try provider.answerNext(status: 410, ["reason": "Unregistered", "timestamp": .integer(now)])
        let code = try await send("security", oneTimeCode("code-push", to: phone.user))
        check(
            try await status(of: code["send_id"], from: "security", with: "token_gone") != nil,
            "the app is gone from the phone: Apple answers 410, and the caller reads the event")
        let person = try await stage.call("product", "GET", "/v1/recipients/\(phone.user)")
        let device = person.json["devices"]?.arrayValue?.compactMap(\.objectValue)
            .first { $0["device"]?.stringValue == phone.device }
        check(device?["active"] == false, "the token is taken out: nothing goes to it any more")
        try await grantConsent(
            phone.user,
            ["id": "anna-texts", "purpose": "security", "channel": "sms", "address": "mobile"],
            to: "sms_service", version: "1")
        say("Anna has agreed to service texts: a yes to push would not count here")
        var text = oneTimeCode("code-text", to: phone.user)
        text["channel"] = "sms"
        text["fallback_for"] = .string(code["send_id"])
        let fallback = try await send("security", text)
        check(fallback.status == 202, "the caller asks for a text: \(words(fallback))")
        let delivered = try await stage.delivery(of: fallback["send_id"])
        check(delivered?["channel"]?.stringValue == "sms", "and the courier has it for its SMS service")
    }

    /// Waits until the checkpoint covers what was recorded.
    private func published() async throws {
        let deadline = Date().addingTimeInterval(10)
        while Date() < deadline {
            if try await stage.call("auditor", "GET", "/readyz").status == 200 {
                let report = try stage.command([
                    "audit", "verify", stage.trail, "--key", stage.trail + "/trail.pub",
                ])
                if report.status == 0 { return }
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func flipOneByte(under folder: String) throws {
        let entries = folder + "/tile/entries"
        guard
            let first = FileManager.default.enumerator(atPath: entries)?.compactMap({ $0 as? String })
                .sorted()
                .first(where: {
                    var isFolder: ObjCBool = false
                    return FileManager.default.fileExists(atPath: entries + "/" + $0, isDirectory: &isFolder)
                        && !isFolder.boolValue
                })
        else { throw CommandFailure("the copied trail holds no entries") }
        let path = entries + "/" + first
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[bytes.count / 2] ^= 1
        try FileManager.default.removeItem(atPath: path)
        try bytes.write(to: URL(filePath: path))
    }

    // MARK: What the scenes share

    private func originKey() async throws -> [UInt8] {
        let keys = try await stage.call("auditor", "GET", "/v1/keys")
        let origin = keys.json["keys"]?.arrayValue?.compactMap(\.objectValue)
            .first { $0["purpose"] == "origin" }
        guard let text = origin?["public_key"]?.stringValue, let bytes = Base64URL.decode(text) else {
            throw CommandFailure("the gateway shows no origin key")
        }
        return bytes
    }

    private func enrol(_ phone: DemoPhone, region: String) async throws {
        let response = try await stage.call(
            "product", "PUT", "/v1/recipients/\(phone.user)",
            [
                "region": .string(region), "region_source": "kyc", "locale": "en", "age": "adult",
                "time_zone": region == "NO" ? "Europe/Oslo" : "Europe/Berlin", "privacy": "generic",
            ])
        guard response.status == 200 else {
            throw CommandFailure("\(phone.user) could not be registered: \(response.json)")
        }
        try await phone.enrol(on: stage, region: region)
    }

    private func grantConsent(_ user: String, id: String) async throws {
        try await grantConsent(
            user, ["id": .string(id), "purpose": "marketing", "channel": "push"], to: "promo", version: "3")
    }

    private func grantConsent(
        _ user: String, _ consent: JSONObject, to notice: String, version: String
    ) async throws {
        let text = try Data(
            contentsOf: URL(filePath: stage.policies + "/notices/\(notice).\(version).en.txt"))
        var consent = consent
        consent["event_time"] = .string(Self.now())
        consent["method"] = "in_app_toggle"
        consent["jurisdiction"] = "DE"
        consent["notice"] = [
            "id": .string(notice), "version": .string(version), "language": "en",
            "sha256": .string(Hexadecimal.encode(SHA256.digest(Array(text)).bytes)),
        ]
        let response = try await stage.call("product", "POST", "/v1/recipients/\(user)/consents", consent)
        guard response.status == 200 else {
            throw CommandFailure("consent was not recorded: \(response.json)")
        }
    }

    private func send(_ caller: String, _ body: JSONObject) async throws -> DemoStage.Response {
        try await stage.call(caller, "POST", "/v1/sends", body)
    }

    private func promo(_ id: String, to user: String) -> JSONObject {
        [
            "id": .string(id), "type": "promo.offer", "recipient": ["user": .string(user)],
            "params": [
                "offer_id": .string(UUID().uuidString.lowercased()), "headline": "No fees this week",
            ],
        ]
    }

    private func remittance(_ id: String, to user: String) -> JSONObject { Self.remittance(id, to: user) }

    fileprivate static func remittance(_ id: String, to user: String) -> JSONObject {
        [
            "id": .string(id), "type": "transaction.remittance_sent", "recipient": ["user": .string(user)],
            "params": [
                "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
            ],
        ]
    }

    private func oneTimeCode(_ id: String, to user: String) -> JSONObject {
        [
            "id": .string(id), "type": "2fa_code", "recipient": ["user": .string(user)],
            "params": ["challenge_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a20", "code": "246810"],
        ]
    }

    /// A moment ago, so that no clock finds it in the future.
    private static func now() -> String {
        Instant(seconds: Int64(Date().timeIntervalSince1970) - 1).rfc3339
    }

    // MARK: Telling

    private func title(_ text: String) { Terminal.print("\n── \(text)") }
    private func say(_ text: String) { Terminal.print("   \(text)") }

    private func check(_ isTrue: Bool, _ text: String) {
        if !isTrue { failureCount += 1 }
        Terminal.print("   \(isTrue ? "✓" : "✗") \(text)")
    }

    private func words(_ response: DemoStage.Response) -> String {
        let detail = response["detail"].isEmpty ? "" : " (\(response["detail"]))"
        return "\(response.status) \(response["outcome"]) \(response["reason"])\(detail)"
    }

    private func sideBySide(_ left: String, _ leftText: String, _ right: String, _ rightText: String) {
        let width = 46
        let leftLines = Self.folded(leftText, width: width, countMax: 12)
        let rightLines = Self.folded(rightText, width: width, countMax: 12)
        func cell(_ text: String) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        Terminal.print("   \(cell(left))   \(right)")
        for row in 0..<max(leftLines.count, rightLines.count) {
            let a = row < leftLines.count ? leftLines[row] : ""
            let b = row < rightLines.count ? rightLines[row] : ""
            Terminal.print("   \(cell(a)) │ \(b)")
        }
    }

    private static func folded(_ text: String, width: Int, countMax: Int) -> [String] {
        var lines: [String] = []
        var rest = Substring(text)
        while !rest.isEmpty {
            if lines.count == countMax - 1, rest.count > width {
                lines.append("… \(rest.count) more characters")
                break
            }
            lines.append(String(rest.prefix(width)))
            rest = rest.dropFirst(width)
        }
        return lines
    }
}

/// A producer in the middle of its day, and what the gateway has promised it so far.
private actor Acknowledged {
    private(set) var all: [(send: String, trail: JSONValue?)] = []
    var count: Int { all.count }

    /// Sends until the gateway is gone.
    func collect(from socket: String) async {
        for number in 0..<400 {
            let body = DemoStory.remittance(
                "burst-\(number)", to: number.isMultiple(of: 2) ? "anna" : "bojan")
            guard let response = try? await DemoStage.call(socket: socket, "POST", "/v1/sends", body) else {
                return
            }
            if response.status == 202 { all.append((response["send_id"], response.json["trail"])) }
        }
    }
}
