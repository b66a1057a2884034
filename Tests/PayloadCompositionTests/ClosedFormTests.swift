import CanonicalJSON
import GateTestKit
import GateVocabulary
import PayloadComposition
import SealedFormat
import Testing

/// What the sealed and the generic form must not tell.
@Suite struct ClosedFormTests {
    static let targets: [PayloadTarget] = [
        .apns(topic: "app.example", suite: .p256), .apns(topic: "app.example", suite: .x25519),
        .fcm(package: "app.example", suite: .p256), .fcm(package: "app.example", suite: .x25519),
        .expo(.ios, suite: .p256), .expo(.android, suite: .p256), .expo(.android, suite: .x25519),
    ]

    @Test(arguments: targets, Sample.languages)
    func `outside the seal nothing tells`(_ target: PayloadTarget, _ language: String) throws {
        let payload = try compose(Sample(language).content, for: target, as: .sealed)
        let outside = try payload.body.outside + payload.headers
        for word in Sample.telling { #expect(!outside.contains(word), "`\(word)` is outside") }
        // And the test can fail: inside, they are there.
        let inner = try #require(payload.innerContent)
        for word in ["remittance_sent", "Ahmad Karimi", Sample.transaction, "drop://", "coins.caf"] {
            #expect(inner.contains(word))
        }
    }

    @Test(arguments: targets + [.sms, .email], Sample.languages)
    func `a generic body tells nothing`(_ target: PayloadTarget, _ language: String) throws {
        let payload = try compose(Sample(language).content, for: target, as: .generic)
        let all = try payload.filledForTest() + payload.headers
        for word in Sample.telling { #expect(!all.contains(word), "`\(word)` is in it") }
    }

    @Test(arguments: targets) func `two notices of one app and urgency differ only in random ids`(
        _ target: PayloadTarget
    ) throws {
        let one = Sample().content
        var other = Sample()
        other.type = TypeID("2fa_code")
        other.number = nil
        other.category = .security
        other.texts = NotificationTexts(title: "Your code", body: "123456 is your code")
        other.params = ["code": "123456"]
        other.referenceNames = []
        (other.deepLink, other.thread, other.sound, other.badge) = ("drop://code", "code", "code.caf", nil)
        (other.actionCategory, other.androidChannel) = ("CODE", "codes")
        for form in [BodyForm.sealed, .generic] {
            let left = try compose(one, for: target, as: form)
            let right = try compose(other.content, for: target, as: form)
            let (leftParts, rightParts) = (try left.body.parts(), try right.body.parts())
            #expect(leftParts.before == rightParts.before && leftParts.after == rightParts.after)
            #expect(left.headers == right.headers)
        }
    }

    @Test(arguments: targets.filter(\.isAndroid))
    func `on Android a sealed notice of any urgency looks like any other`(
        _ target: PayloadTarget
    ) throws {
        let outsides = try Interruption.allCases.map { interruption in
            let payload = try compose(Sample(interruption: interruption).content, for: target, as: .sealed)
            return try payload.body.outside
        }
        #expect(
            Set(outsides).count == 1
                && String(decoding: outsides[0], as: UTF8.self).lowercased().contains("\"high\""),
            "\(outsides)")
    }

    @Test(arguments: targets) func `content without a place outside is sealed whole`(_ target: PayloadTarget)
        throws
    {
        let payload = try compose(
            Sample(unsubscribeLink: "https://e.example/u/1").content, for: target, as: .sealed)
        let inner = try CanonicalJSON.readCanonical(try #require(payload.innerContent))
        #expect(inner["number"] == 7)
        #expect(inner["type"] == "transaction.remittance_sent")
        #expect(inner["params"]?["amount"]?["minor"] == 500_000)
        #expect(inner["unsubscribe"] == "https://e.example/u/1")
        #expect(inner["sent_at"] == 1_795_237_200_000)
        #expect(inner["public_title"] == "Transfer")
        #expect(inner["badge"] == 3)
    }

    @Test func `only push is sealed, and only to a key`() {
        let content = Sample().content
        for target in [
            PayloadTarget.sms, .email, .apns(topic: "a", suite: nil), .fcm(package: "a", suite: nil),
            .expo(.ios, suite: nil), .expo(.android, suite: nil),
        ] {
            #expect(throws: CompositionError.sealedWithoutKey) {
                try compose(content, for: target, as: .sealed)
            }
        }
    }

    @Test(arguments: targets + [.sms, .email]) func `a type that is never sent here has no payload`(
        _ target: PayloadTarget
    ) {
        #expect(throws: CompositionError.formNever) { try compose(Sample().content, for: target, as: .never) }
    }
}

/// Lengths are known before anything is sealed.
@Suite struct EnvelopePlaceTests {
    /// Content lengths on both sides of every bucket.
    static let names = [1, 60, 61, 150, 151, 152, 300, 400, 500, 900, 1000, 1200, 1400, 1500, 1600, 1700]

    @Test(arguments: ClosedFormTests.targets) func `the size is known before sealing, in every bucket`(
        _ target: PayloadTarget
    ) throws {
        var buckets: Set<Int> = []
        let suite: SealingSuite =
            switch target {
            case .apns(_, .some(let suite)), .fcm(_, .some(let suite)), .expo(_, .some(let suite)): suite
            default: .p256
            }
        for padding in stride(from: 0, through: 1400, by: 7) {
            var sample = Sample()
            sample.params = ["p": .string(String(repeating: "x", count: padding))]
            sample.texts = NotificationTexts(title: "t", body: "b")
            let content = sample.content
            let payload = try compose(content, for: target, as: .sealed)
            let inner = try #require(payload.innerContent)
            let bucket = try #require(SealedLimits.bucket(contentByteCount: inner.count))
            buckets.insert(bucket)
            let envelope = try SealedEnvelope(
                suite: suite, keyID: [UInt8](repeating: 7, count: 16), messageID: content.message.bytes,
                expiresAt: UInt64(content.expiresAt.seconds),
                sealed: [UInt8](
                    repeating: 0xEE, count: suite.publicKeyByteCount + bucket + SealedLimits.tagByteCount))
            let filled = try payload.body.filled(with: envelope.bytes)
            #expect(filled.count == payload.body.byteCount)
            #expect(filled.count + target.addedByteCount == payload.byteCount)
            #expect(payload.byteCount <= 4096)
            // What the device reads out of the body is the envelope, byte for byte.
            let json = try CanonicalJSON.readCanonical(filled)
            let carried = json["sendgate"] ?? (json["message"] ?? json)["data"]?["sendgate"]
            #expect(carried?.stringValue.map { Array($0.utf8) } == envelope.bytes)
        }
        #expect(buckets == [1024, 2048])
    }

    @Test(arguments: ClosedFormTests.targets) func `the largest content there is still fits`(
        _ target: PayloadTarget
    ) throws {
        var sample = Sample()
        sample.params = [:]
        let base = try compose(sample.content, for: target, as: .sealed).innerContent!.count
        let room = SealedLimits.contentByteCountMax - base - 6
        sample.params = ["p": .string(String(repeating: "x", count: room))]
        let largest = try compose(sample.content, for: target, as: .sealed)
        #expect(largest.innerContent?.count == SealedLimits.contentByteCountMax)
        #expect(largest.byteCount <= 4096)
        // One byte more has a size too, and it is over every bound.
        sample.params = ["p": .string(String(repeating: "x", count: room + 1))]
        #expect(try compose(sample.content, for: target, as: .sealed).byteCount > 4096)
    }

    /// An old key shows in no length, and refuses no message.
    @Test(arguments: ClosedFormTests.targets) func `the end of a key is told where its bucket has the room`(
        _ target: PayloadTarget
    ) throws {
        let member = #""rotate_key_by":1800000000000,"#
        var (told, untold) = (0, 0)
        for length in stride(from: 0, through: 1_800, by: 5) {
            var sample = Sample()
            sample.params = ["p": .string(String(repeating: "x", count: length))]
            let plain = try compose(sample.content, for: target, as: .sealed)
            sample.rotateKeyBy = Instant(milliseconds: 1_800_000_000_000)
            let old = try compose(sample.content, for: target, as: .sealed)
            #expect(old.byteCount == plain.byteCount)
            let (before, after) = (try #require(plain.innerContent), try #require(old.innerContent))
            if String(decoding: after, as: UTF8.self).contains(member) {
                told += 1
            } else {
                untold += 1
                #expect(after == before)
                // Too long already, or with the member.
                let bucket = SealedLimits.bucket(contentByteCount: before.count)
                #expect(
                    bucket == nil
                        || SealedLimits.bucket(contentByteCount: before.count + member.utf8.count) != bucket)
            }
        }
        #expect(told > 100 && untold > 6)
    }

    @Test func `an envelope of another length than foretold is refused`() throws {
        let body = try compose(Sample().content, for: .apns(topic: "a", suite: .p256), as: .sealed).body
        let expected = try #require(body.insertionByteCount)
        #expect(throws: CompositionError.insertionLength(expected: expected, actual: expected + 1)) {
            try body.filled(with: TestEnvelope.bytes(count: expected + 1))
        }
        #expect(throws: CompositionError.insertionNotExpected(hasPlace: true)) { try body.filled(with: nil) }
        // The right length with another number of quotation marks is no envelope either.
        #expect(throws: CompositionError.self) {
            try body.filled(with: [UInt8](repeating: UInt8(ascii: "\""), count: expected))
        }
    }

    @Test func `a body without a place takes no envelope`() throws {
        let body = try compose(Sample().content, for: .email, as: .generic).body
        #expect(throws: CompositionError.insertionNotExpected(hasPlace: false)) { try body.filled(with: [1]) }
        #expect(try body.filled(with: nil).count == body.byteCount)
    }
}

extension PayloadTarget {
    fileprivate var isAndroid: Bool {
        switch self {
        case .fcm, .expo(.android, _): true
        default: false
        }
    }

    /// What Expo adds to a message is weighed as well.
    var addedByteCount: Int { if case .expo = self { 256 } else { 0 } }
}

/// Provider rules that are easy to get wrong.
@Suite struct ProviderRuleTests {
    @Test(arguments: Interruption.allCases) func `APNs hears how urgent it is`(_ interruption: Interruption)
        throws
    {
        let payload = try compose(
            Sample(interruption: interruption).content, for: .apns(topic: "a", suite: nil), as: .full)
        let aps = try CanonicalJSON.readCanonical(try payload.filledForTest())["aps"]
        let (level, priority): (String, String) =
            switch interruption {
            case .passive: ("passive", "5")
            case .active: ("active", "5")
            case .timeSensitive: ("time-sensitive", "10")
            case .critical: ("critical", "10")
            }
        #expect(aps?["interruption-level"]?.stringValue == level)
        #expect(try CanonicalJSON.readCanonical(payload.headers)["apns-priority"]?.stringValue == priority)
        switch interruption {
        case .passive: #expect(aps?["sound"] == nil)
        case .active, .timeSensitive: #expect(aps?["sound"] == "coins.caf")
        case .critical: #expect(aps?["sound"] == ["critical": 1, "name": "coins.caf", "volume": 1])
        }
    }

    /// As `ExpoPushMessage` of `expo-server-sdk` has it.
    private static func expo(_ platform: Platform, _ sample: Sample, _ form: BodyForm = .full) throws
        -> JSONObject
    {
        let payload = try compose(sample.content, for: .expo(platform, suite: .p256), as: form)
        #expect(payload.headers == Array("{}".utf8))
        return try CanonicalJSON.readCanonical(try payload.filledForTest()).objectValue ?? [:]
    }

    @Test(arguments: Interruption.allCases) func `Expo hears how urgent it is`(_ interruption: Interruption)
        throws
    {
        let (level, priority): (String, String) =
            switch interruption {
            case .passive: ("passive", "normal")
            case .active: ("active", "normal")
            case .timeSensitive: ("time-sensitive", "high")
            case .critical: ("critical", "high")
            }
        let sound: JSONValue? =
            switch interruption {
            case .passive: nil
            case .active, .timeSensitive: "coins.caf"
            case .critical: ["critical": true, "name": "coins.caf", "volume": 1]
            }
        let phone = try Self.expo(.ios, Sample(interruption: interruption))
        #expect(phone["interruptionLevel"]?.stringValue == level && phone["sound"] == sound)
        #expect(phone["priority"]?.stringValue == priority && phone["mutableContent"] == true)
        // What is for iOS only is not told to Android, where the channel has the sound.
        let android = try Self.expo(.android, Sample(interruption: interruption))
        #expect(android["priority"]?.stringValue == priority)
        #expect(android["channelId"] == "transactional")
        for name in ["interruptionLevel", "sound", "mutableContent", "badge", "categoryId", "threadId"] {
            #expect(android[name] == nil, "\(name)")
        }
        for name in ["channelId", "tag"] { #expect(phone[name] == nil, "\(name)") }
    }

    @Test func `a sealed message to Expo wakes an Android app, and an iPhone shows its constant text`() throws
    {
        let android = try Self.expo(.android, Sample(), .sealed)
        // A title, a body or a channel outside of `data` would have the system show it.
        #expect(Array(android.keys) == ["data", "priority", "ttl"])
        #expect(
            android["data"]?.objectValue.map { Array($0.keys) } == ["body", "collapse", "sendgate", "title"])
        let phone = try Self.expo(.ios, Sample(), .sealed)
        #expect(phone["title"] == "Drop: New notification" && phone["mutableContent"] == true)
        #expect(phone["data"]?.objectValue.map { Array($0.keys) } == ["sendgate"])
    }

    @Test func `every message to Expo whose copies replace one another says under what`() throws {
        let collapse = "0123456789abcdef000000000000002a"
        #expect(try Self.expo(.ios, Sample())["collapseId"]?.stringValue == collapse)
        #expect(try Self.expo(.ios, Sample(), .generic)["collapseId"]?.stringValue == collapse)
        #expect(try Self.expo(.android, Sample())["tag"]?.stringValue == collapse)
        #expect(try Self.expo(.android, Sample())["collapseId"]?.stringValue == collapse)
        let closed = try Self.expo(.android, Sample(), .generic)
        #expect(closed["tag"]?.stringValue == collapse)
        // Google stores messages of four keys for a device that is offline, and each message has its own.
        #expect(closed["collapseId"] == nil)
        var sample = Sample()
        sample.collapse = nil
        for platform in Platform.allCases {
            let message = try Self.expo(platform, sample)
            #expect(message["collapseId"] == nil && message["tag"] == nil)
        }
    }

    @Test(arguments: Platform.allCases, [BodyForm.generic, .full])
    func `what the origin key signs is what Expo is given, in the order of the names`(
        _ platform: Platform, _ form: BodyForm
    ) throws {
        let sample = Sample(unsubscribeLink: "https://e.example/u/1")
        let payload = try compose(sample.content, for: .expo(platform, suite: nil), as: form)
        let data = try CanonicalJSON.readCanonical(try payload.filledForTest())["data"]
        let signed = try OpenPushContent { data?[$0.rawValue]?.stringValue }
        guard case .open(let push) = payload.content else { throw CompositionError.formNever }
        #expect(try push.signedContent() == signed)
        #expect((data?["badge"] == "3") == (platform == .ios && form == .full))
    }

    @Test func `storage times stay within what the providers take`() throws {
        var sample = Sample()
        sample.expiresAt = sample.sentAt.advanced(bySeconds: 400 * 86_400)
        let apns = try compose(sample.content, for: .apns(topic: "a", suite: nil), as: .full)
        let end = sample.sentAt.seconds + 30 * 86_400
        #expect(try CanonicalJSON.readCanonical(apns.headers)["apns-expiration"] == .string(String(end)))
        let fcm = try CanonicalJSON.readCanonical(
            try compose(sample.content, for: .fcm(package: "a", suite: nil), as: .full).filledForTest())
        #expect(fcm["message"]?["android"]?["ttl"] == "2419200s")
        for platform in Platform.allCases {
            #expect(try Self.expo(platform, sample)["ttl"] == 2_419_200)
        }
        sample.expiresAt = sample.sentAt.advanced(byMilliseconds: 1)
        #expect(try Self.expo(.ios, sample)["ttl"] == 1)
        let short = try CanonicalJSON.readCanonical(
            try compose(sample.content, for: .fcm(package: "a", suite: nil), as: .full).filledForTest())
        #expect(short["message"]?["android"]?["ttl"] == "1s")
    }

    @Test func `a message without a collapse key collapses nothing`() throws {
        var sample = Sample()
        sample.collapse = nil
        let apns = try compose(sample.content, for: .apns(topic: "a", suite: nil), as: .full)
        #expect(try CanonicalJSON.readCanonical(apns.headers)["apns-collapse-id"] == nil)
        let fcm = try compose(sample.content, for: .fcm(package: "a", suite: nil), as: .full)
        #expect(!(try fcm.filledForTest().contains("collapseKey")))
    }

    @Test func `a screen shows the public texts unless the recipient asked for all`() throws {
        for (privacy, title) in [
            (PrivacyLevel.full, "Money sent"), (.generic, "Transfer"), (.hidden, "Transfer"),
        ] {
            let payload = try compose(
                Sample(privacy: privacy).content, for: .apns(topic: "a", suite: nil), as: .full)
            let json = try CanonicalJSON.readCanonical(try payload.filledForTest())
            #expect(json["aps"]?["alert"]?["title"]?.stringValue == title)
        }
    }
}

@Suite struct SMSEncodingTests {
    @Test(arguments: [
        ("plain", 160, SMSEncoding.Alphabet.gsm7, 1, 160), ("plain", 161, .gsm7, 2, 161),
        ("plain", 306, .gsm7, 2, 306),
        ("plain", 307, .gsm7, 3, 307), ("plain", 459, .gsm7, 3, 459), ("plain", 460, .gsm7, 4, 460),
        ("euro", 80, .gsm7, 1, 160), ("euro", 81, .gsm7, 2, 162), ("euro", 229, .gsm7, 4, 460),
        ("cyrillic", 70, .ucs2, 1, 153), ("cyrillic", 71, .ucs2, 2, 306), ("cyrillic", 201, .ucs2, 3, 459),
        ("cyrillic", 202, .ucs2, 4, 612), ("emoji", 35, .ucs2, 1, 153), ("emoji", 36, .ucs2, 2, 306),
        ("emoji", 67, .ucs2, 3, 459),
    ]) func `a text costs its segments`(
        _ kind: String, _ count: Int, _ alphabet: SMSEncoding.Alphabet, _ segments: Int, _ characters: Int
    ) {
        let unit = ["plain": "a", "euro": "€", "cyrillic": "д", "emoji": "😀"][kind]!
        let encoding = SMSEncoding(String(repeating: unit, count: count))
        #expect(encoding.alphabet == alphabet)
        #expect(encoding.segmentCount == segments)
        #expect(encoding.characterCount == characters)
    }

    @Test func `Norwegian letters and an amount stay in the cheap alphabet`() throws {
        var sample = Sample("nb")
        let template = MessageText.plain(
            MessageTemplate([
                .param("name"), .text(" fikk "), .param("amount"), .text(", saldo "), .param("count"),
            ]))
        let name = try PlainTextRule().checked("Åse Øvrebø")
        let values = ListedParams(
            [
                ("name", .text(name)), ("amount", .money(minor: 500_000, currency: "NOK")),
                ("count", .integer(-1)),
            ], in: LanguageTag("nb")!, hasPlainNumbers: true)
        sample.texts = NotificationTexts(title: "", body: try template.filled(with: values))
        let payload = try compose(sample.content, for: .sms, as: .full)
        let body = try CanonicalJSON.readCanonical(try payload.filledForTest())
        #expect(body["encoding"] == "gsm7")
        #expect(body["text"] == "Drop: Åse Øvrebø fikk 5 000,00 kr, saldo -1")
    }

    @Test func `a text message says what somebody chose as it was judged`() throws {
        var sample = Sample("nb")
        let name = try PlainTextRule().checked("Kafé \u{2212}5°")
        sample.texts = NotificationTexts(title: "", body: name.isolated)
        let payload = try compose(sample.content, for: .sms, as: .full)
        let body = try CanonicalJSON.readCanonical(try payload.filledForTest())
        #expect(body["text"] == "Drop: Kafé \u{2212}5°")
    }
}
