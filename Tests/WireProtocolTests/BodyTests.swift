import CanonicalJSON
import GateRecords
import GateVocabulary
import SealedFormat
import Testing

@testable import WireProtocol

@Suite struct BodyTests {
    @Test func `a recipient keeps what was said and defaults the rest to the careful side`() throws {
        let body = try Given<RecipientRecord>.read(CanonicalJSON.write(RecipientRecord.givenExample)).get()
            .record
        #expect(body.region?.code == RegionCode("DE"))
        #expect(body.region?.source == .kyc)
        #expect(body.quietHours == QuietHours(startMinute: 1260, endMinute: 480))
        let empty = try Given<RecipientRecord>.read(Array("{}".utf8)).get().record
        #expect(empty.privacy == .generic)
        #expect(empty.pushEnabled)
        #expect(empty.region == nil && empty.age == nil && empty.quietHours == nil)
    }

    @Test func `a device says what its operating system allows`() throws {
        let device = try Given<DeviceRecord>.read(CanonicalJSON.write(DeviceRecord.givenExample)).get().record
        #expect(device.osPermission == .granted)
        #expect(device.criticalAlerts)
        #expect(device.region?.source == .device)
        #expect(device.region?.observedAt == Instant(rfc3339: "2026-11-20T09:30:00Z"))
        var object = try #require(DeviceRecord.givenExample.objectValue)
        object["os_permission"] = nil
        guard case .failure(.invalid(let violations)) = Given<DeviceRecord>.read(CanonicalJSON.write(object))
        else {
            Issue.record("a device without its permission was read")
            return
        }
        #expect(violations.map(\.place) == [.body(JSONPointer(["os_permission"]))])
    }

    @Test func `a token is checked by its platform, and one of Apple's has one spelling`() throws {
        func token(_ platform: String, _ token: String) -> String? {
            let body: JSONObject = [
                "platform": .string(platform), "app": "a.b", "token": .string(token),
                "os_permission": "granted",
            ]
            return try? Given<DeviceRecord>.read(CanonicalJSON.write(body)).get().record.token
        }
        #expect(token("ios", "00AAbb") == "00aabb")
        #expect(token("android", "Aa:_-0") == "Aa:_-0")
        for (platform, text) in [
            ("ios", "00a"), ("ios", "zz"), ("ios", "fcm:Aa"), ("ios", ""), ("ios", "AKq1Zw=="),
            ("ios", String(repeating: "a", count: 202)), ("android", "a b"), ("android", "a[b]"),
            ("android", ""),
        ] { #expect(token(platform, text) == nil, "\(platform) \(text)") }
    }

    private static func device(
        _ platform: String, _ token: String, by provider: JSONValue? = nil
    ) -> Result<Given<DeviceRecord>, BodyError> {
        var body: JSONObject = [
            "platform": .string(platform), "app": "a.b", "token": .string(token), "os_permission": "granted",
        ]
        body["provider"] = provider
        return Given<DeviceRecord>.read(CanonicalJSON.write(body))
    }

    /// What is said of the one member that is wrong.
    private static func complaint(_ result: Result<Given<DeviceRecord>, BodyError>, about member: String)
        -> String?
    {
        guard case .failure(.invalid(let violations)) = result, violations.count == 1,
            violations[0].place == .body(JSONPointer([member]))
        else { return nil }
        return violations[0].message
    }

    @Test(
        arguments: ["ios", "android"],
        [
            "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]", "ExpoPushToken[A-_9]",
            "ExpoPushToken[" + String(repeating: "x", count: 128) + "]",
            "F5f8E9a0-0b1C-4d2e-8F3a-4b5c6d7e8f90",
        ])
    func `a token of Expo's is taken as it is, on either platform`(_ platform: String, _ token: String) throws
    {
        let body = try Self.device(platform, token, by: "expo").get().record
        #expect(body.token == token && body.provider == .expo && body.platform.rawValue == platform)
    }

    @Test(
        arguments: ["ios", "android"],
        [
            "", "ExponentPushToken[]", "ExponentPushToken[a", "ExponentPushToken[a]x",
            "ExponentPushToken[a\"]",
            "ExponentPushToken[a b]", "ExponentPushToken[a]ExponentPushToken[b]", "exponentpushtoken[a]",
            "ExponentPushToken[å]", "ExpoPushToken[" + String(repeating: "x", count: 129) + "]", "00aa",
            "c1:APA91b-_Z", "F5f8E9a0-0b1C-4d2e-8F3a-4b5c6d7e8f9", "F5f8E9a00b1C4d2e8F3a4b5c6d7e8f90",
            "ExponentPushToken[a]\n",
        ])
    func `with Expo as provider a token of another shape is refused, and what to do is said`(
        _ platform: String, _ token: String
    ) throws {
        let said = try #require(
            Self.complaint(Self.device(platform, token, by: "expo"), about: "token"), "\(token)")
        #expect(said.contains("`getExpoPushTokenAsync`") && said.contains("leave `provider` out"), "\(said)")
    }

    @Test(arguments: ["ios", "android"], ["ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]", "ExpoPushToken["])
    func `a token of Expo's without its provider is refused, and what to do is said`(
        _ platform: String, _ token: String
    ) throws {
        let said = try #require(Self.complaint(Self.device(platform, token), about: "token"))
        #expect(said.contains("add `provider` with the value `expo`"), "\(said)")
        // Another mistake gets no advice about this one.
        let other = try #require(Self.complaint(Self.device(platform, "[a b]"), about: "token"))
        #expect(!other.contains("expo"), "\(other)")
    }

    @Test(arguments: ["onesignal", "Expo", "", 1, true] as [JSONValue])
    func `another provider than Expo is none`(_ provider: JSONValue) throws {
        let said = try #require(
            Self.complaint(Self.device("ios", "ExponentPushToken[a]", by: provider), about: "provider"))
        #expect(said == "expected `expo`")
    }

    @Test func `Expo alone does not say which platform it is`() throws {
        let body: JSONObject = [
            "provider": "expo", "app": "a.b", "token": "ExponentPushToken[a]", "os_permission": "granted",
        ]
        let said = try #require(
            Self.complaint(Given<DeviceRecord>.read(CanonicalJSON.write(body)), about: "platform"))
        #expect(said.contains("`ios`") && said.contains("`android`"), "\(said)")
    }

    @Test func `an address is checked by its kind`() throws {
        func accepts(_ kind: String, _ value: String) -> Bool {
            let body: JSONObject = ["kind": .string(kind), "value": .string(value)]
            if case .success = Given<AddressRecord>.read(CanonicalJSON.write(body)) { return true }
            return false
        }
        for (kind, value) in [("sms", "+47 900 00 000"), ("email", "a@b.no")] {
            #expect(accepts(kind, value))
            #expect(!accepts(kind, "") && !accepts(kind, "\(value)\n") && !accepts(kind, "\(value)\u{85}"))
        }
        #expect(!accepts("sms", String(repeating: "4", count: 65)))
        #expect(!accepts("email", String(repeating: "a", count: 255)))
        // Whether it is an address that can be is the registration's to say, with what is wrong (`AddressSpellingTests`).
        func isAddress(_ channel: Channel, _ value: String) -> Bool {
            (try? RegisteredAddress(channel, value)) != nil
        }
        #expect(isAddress(.sms, "+4790000000") && !isAddress(.email, "+4790000000"))
        #expect(isAddress(.email, "a@b.no") && !isAddress(.sms, "a@b.no"))
        for bad in ["004790000000", "+0790000000", "+1234567890123456", "4790000000"] {
            #expect(!isAddress(.sms, bad), "\(bad)")
        }
        for bad in [
            "a@b", "@b.no", "a@", "a b@c.no", "a@b..no", "a@-b.no", "a@b-.no", "a@b.no..", "a@b_c.no",
            "æ@b.no",
            "a@b.no\n", "a@b.no,c@d.no", "<a@b.no>", String(repeating: "a", count: 65) + "@b.no",
            "a@" + String(repeating: "b", count: 64) + ".no",
        ] {
            #expect(!isAddress(.email, bad), "\(bad)")
        }
    }

    @Test func `a device key is the bytes its suite asks for`() throws {
        let p256 = try DeviceKeyBody.read(CanonicalJSON.write(DeviceKeyBody.example)).get()
        #expect(p256.publicKey.count == 65 && p256.publicKey[0] == 4)
        var object: JSONObject = [
            "suite": "X25519_SHA256_CHACHA20POLY1305",
            "public_key": .string(Base64URL.encode([UInt8](1...32))),
        ]
        #expect(try DeviceKeyBody.read(CanonicalJSON.write(object)).get().publicKey == [UInt8](1...32))
        for bad in [
            Base64URL.encode([UInt8](1...31)), Base64URL.encode([UInt8](1...33)),
            Base64URL.encode([UInt8](1...32)) + "=",
            "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyB", "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHy+",
        ] {
            object["public_key"] = .string(bad)
            guard case .failure = DeviceKeyBody.read(CanonicalJSON.write(object)) else {
                Issue.record("\(bad) was read")
                return
            }
        }
    }

    static let p256PEM = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
        6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
        -----END PUBLIC KEY-----
        """

    @Test(
        arguments: [
            ("P256_SHA256_AES256GCM", p256PEM, "the raw 65 bytes"),
            (
                "P256_SHA256_AES256GCM",
                "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==",
                "the raw 65 bytes"
            ),
            (
                "X25519_SHA256_CHACHA20POLY1305",
                "MCowBQYDK2VuAyEAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=", "the raw 32 bytes"
            ),
            ("X25519_SHA256_CHACHA20POLY1305", "-----BEGIN PUBLIC KEY-----\n", "the raw 32 bytes"),
            // Another mistake gets no advice about this one.
            ("P256_SHA256_AES256GCM", "AQID", nil), ("X25519_SHA256_CHACHA20POLY1305", "MCow", nil),
        ] as [(String, String, String?)])
    func `a key in PEM or DER is refused with what to send in its place`(
        suite: String, key: String, advice: String?
    ) throws {
        let body: JSONObject = ["suite": .string(suite), "public_key": .string(key)]
        guard case .failure(.invalid(let violations)) = DeviceKeyBody.read(CanonicalJSON.write(body)) else {
            Issue.record("\(key) was read")
            return
        }
        #expect(violations.map(\.place) == [.body(JSONPointer(["public_key"]))])
        let message = try #require(violations.first?.message)
        #expect(message.contains("as base64url") == (advice != nil), "\(message)")
        if let advice { #expect(message.contains(advice), "\(message)") }
    }

    @Test func `consent for a channel names its address, and push has none`() throws {
        let body = try ConsentBody.read(CanonicalJSON.write(ConsentBody.example)).get()
        #expect(body.state == .given && body.address == nil && body.expiresAt == nil)
        #expect(body.notice.version == "3")
        for (channel, address, isRead) in [
            ("push", JSONValue.null, true), ("push", "a_1", false), ("sms", "a_1", true), ("sms", nil, false),
            ("email", "a_1", true),
        ] as [(String, JSONValue, Bool)] {
            let value = BodyCase.consent(["channel": .string(channel), "address": address])
            let result = ConsentBody.read(CanonicalJSON.write(value))
            #expect(((try? result.get()) != nil) == isRead, "\(channel) \(address)")
        }
    }

    @Test func `withdrawing asks for nothing at all`() throws {
        let body = try ConsentWithdrawBody.readOptional([]).get()
        #expect(body == (try ConsentWithdrawBody.read(Array("{}".utf8)).get()))
        #expect(body.eventTime == nil && body.method == nil)
    }

    @Test func `only the step-up flow makes the off that silences security`() throws {
        func state(_ state: String, _ source: String) throws -> PreferenceBody {
            let body: JSONObject = ["state": .string(state), "source": .string(source), "channel": "push"]
            return try PreferenceBody.read(CanonicalJSON.write(body)).get()
        }
        #expect(try state("user_off", "in_app_settings").storedState == .userOff)
        #expect(try state("user_off", "in_app_step_up").storedState == .userOffStepUp)
        #expect(try state("user_on", "in_app_step_up").storedState == .userOn)
        #expect(try state("user_off", "in_app_step_up").neededGrant == .preferencesStepUp)
        #expect(try state("user_off", "unsubscribe_link").neededGrant == .preferencesWrite)
        #expect(throws: BodyError.self) { try state("user_off_step_up", "in_app_settings") }
    }

    @Test func `a send can be explained as it is, or on facts alone`() throws {
        let send = try ExplainBody.read(CanonicalJSON.write(SendRequest.example)).get()
        #expect(send.send == (try SendRequest.read(CanonicalJSON.write(SendRequest.example)).get()))
        #expect(send.neededGrants(of: CallerName("payments")) == [.send, .subjectsRead])
        var asOther = send
        asOther.caller = CallerName("marketing")
        #expect(asOther.neededGrants(of: CallerName("payments")) == [.subjectsRead])
        #expect(asOther.neededGrants(of: CallerName("marketing")) == [.send, .subjectsRead])
        let facts = try ExplainBody.read(CanonicalJSON.write(ExplainBody.example)).get()
        #expect(facts.neededGrants(of: CallerName("marketing")).isEmpty)
        #expect(facts.facts?.consent?.state == .neverAsked)
        #expect(facts.facts?.quietHours == .inside(endsAt: Instant(milliseconds: 1_795_330_800_000)))
        guard case .failure(.invalid(let violations)) = ExplainBody.read(Array(#"{"type":"t"}"#.utf8)) else {
            Issue.record("a send without recipient or facts was explained")
            return
        }
        #expect(violations.count == 1)
    }

    @Test func `facts written by the vocabulary are read here, every one of them`() throws {
        // Given facts with every property set, so that a new fact the shape forgets is found.
        var facts = Facts()
        let moment = Instant(milliseconds: 1_795_237_200_000)
        let region = try #require(RegionCode("US-CA"))
        (facts.now, facts.expiry, facts.due) = (moment, moment, moment)
        (facts.params, facts.fallback, facts.recipient, facts.age) = (.valid, .mismatch, .registered, .minor)
        facts.accountRegion = RegionObservation(code: region, source: .kyc, observedAt: moment)
        facts.deviceRegions = [RegionObservation(code: region, source: .ip, observedAt: moment)]
        (facts.privacy, facts.pushEnabled) = (.hidden, true)
        facts.consent = ConsentFact(state: .given, method: .doubleOptIn, expiresAt: moment)
        facts.purposeConsent = ConsentFact(state: .otherAddress)
        (facts.ownRequest, facts.repetition, facts.withheld) = (
            ConsentFact(state: .refused), .alreadySent, true
        )
        (facts.accountPreference, facts.destinationPreference) = (.userOn, .userOffStepUp)
        (facts.accountTypePreference, facts.destinationTypePreference) = (.default, .userOff)
        (facts.quietHours, facts.destination, facts.platform) = (.zoneMissing, .unverified, .android)
        (facts.osPermission, facts.criticalAlerts, facts.deviceKey) = (.notDetermined, false, .revoked)
        facts.sizes = PayloadSizes(sealed: 1, generic: 2, full: 3)
        (facts.typeCount, facts.categoryCount, facts.everythingCount) = (0, 9_007_199_254_740_991, 7)
        #expect(facts.json.count == Facts.names.count)
        // When they are asked about.
        let body: JSONObject = ["type": "t", "facts": .object(facts.json)]
        // Then nothing of them is lost, and none is refused.
        #expect(try ExplainBody.read(CanonicalJSON.write(body)).get().facts == facts)
    }

    @Test(arguments: [UInt8](0...70))
    func `base64url reads back what it writes and no second spelling`(_ count: UInt8) {
        let bytes = (0..<count).map { $0 &* 37 &+ 200 }
        let text = Base64URL.encode(bytes)
        #expect(Base64URL.decode(text) == bytes)
        #expect(Base64URL.decode(text + "=") == nil)
        if count % 3 == 1 { #expect(Base64URL.decode(String(text.dropLast()) + "B") == nil) }
        #expect(Base64URL.decode(text + "+") == nil)
    }

    @Test(arguments: [
        ("a", "a"), ("a b/c", "a%20b%2Fc"), ("-._~", "-._~"), ("%", "%25"), ("ü", "%C3%BC"),
        ("+&=", "%2B%26%3D"),
        ("\u{0}", "%00"), ("", ""),
    ])
    func `percent encoding escapes what may be reserved, and reads back`(_ text: String, _ encoded: String) {
        #expect(PercentEncoding.encode(text) == encoded)
        #expect(PercentEncoding.decode(encoded[...]) == text)
    }

    @Test(arguments: [
        ("application/json", true), ("Application/JSON", true), ("application/json; charset=utf-8", true),
        ("application/json;charset=\"UTF-8\"", true), ("application/json ;", true),
        ("application/json; charset=utf-16", false),
        ("text/json", false), ("application/jsonx", false), ("application/problem+json", false), ("", false),
        ("application/json; boundary=x", false), ("application/json, application/json", false),
    ])
    func `a body's media type is the route's, in UTF-8`(_ header: String, _ isAccepted: Bool) {
        let problem = Problem.refusing(body: [1], contentType: header, where: Self.json)
        #expect(problem?.name == (isAccepted ? nil : .unsupportedMediaType))
    }

    private static let content = RouteDescription.Body.Content(
        shape: EmptyBody.shape, examples: [("Nothing", EmptyBody.example)])
    static let json = RouteDescription.Body.json(content)
    static let optional = RouteDescription.Body.optionalJSON(content)
    static let lines = RouteDescription.Body.lines(content)

    @Test func `a body is refused where none is read and excused where none is needed`() {
        #expect(
            Problem.refusing(body: [1], contentType: "application/json", where: .none)?.name
                == .malformedRequest)
        #expect(Problem.refusing(body: [], contentType: nil, where: .none) == nil)
        #expect(Problem.refusing(body: [], contentType: nil, where: Self.optional) == nil)
        #expect(
            Problem.refusing(body: [1], contentType: nil, where: Self.optional)?.name == .unsupportedMediaType
        )
        #expect(Problem.refusing(body: [], contentType: nil, where: Self.json)?.name == .unsupportedMediaType)
        #expect(Problem.refusing(body: [1], contentType: "application/x-ndjson", where: Self.lines) == nil)
    }
}
