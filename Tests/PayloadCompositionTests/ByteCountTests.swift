import CanonicalJSON
import GateVocabulary
import PayloadComposition
import SealedFormat
import Testing

/// What goes nowhere is weighed without being written.
@Suite struct ByteCountTests {
    /// Nothing to escape, everything that is, and escapes around the end of eight bytes.
    static let texts = [
        "", "plain", "Åse 😀 \u{2028}", #"He said "no" \ "yes""#, "\"", "1234567\"", "12345678\\",
        "123456789\n1",
        String(decoding: (0...0x7F).map { UInt8($0) }, as: UTF8.self),
        String(repeating: "a long text, ", count: 40) + "\u{1}",
    ]
    static let cases: [(target: PayloadTarget, form: BodyForm)] =
        ClosedFormTests.targets.flatMap { target in [.sealed, .generic, .full].map { (target, $0) } }
        + [PayloadTarget.sms, .email].flatMap { target in [.generic, .full].map { (target, $0) } }

    @Test(arguments: cases) func `a payload weighs as much as its bytes, whatever its texts`(
        _ target: PayloadTarget, _ form: BodyForm
    ) throws {
        for language in Sample.languages {
            for text in Self.texts {
                for interruption in Interruption.allCases {
                    for privacy in PrivacyLevel.allCases {
                        for sample in Self.samples(language, text, interruption, privacy) {
                            let content = sample.content
                            let payload = try compose(content, for: target, as: form)
                            let weighed = try composedByteCount(content, for: target, as: form)
                            #expect(weighed == payload.byteCount, "\(language) \(text) \(interruption)")
                            if target.channel == .sms { continue }
                            let byteCount = try payload.filledForTest().count
                            #expect(byteCount + target.addedByteCount == weighed)
                            guard let inner = payload.innerContent, let suite = target.suite else { continue }
                            let known = SealedEnvelope.byteCount(contentByteCount: inner.count, suite: suite)
                            #expect(known == nil || known == payload.body.insertionByteCount)
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: [
        PayloadTarget.sms, .email, .apns(topic: "a", suite: nil), .fcm(package: "a", suite: nil),
        .expo(.ios, suite: nil), .expo(.android, suite: nil),
    ])
    func `what cannot be sealed has no weight`(_ target: PayloadTarget) {
        #expect(throws: CompositionError.sealedWithoutKey) {
            try composedByteCount(Sample().content, for: target, as: .sealed)
        }
    }

    /// A notification that has everything there is, and one with as little as there can be.
    private static func samples(
        _ language: String, _ text: String, _ interruption: Interruption, _ privacy: PrivacyLevel
    ) -> [Sample] {
        var full = Sample(
            language, name: text, privacy: privacy, interruption: interruption, unsubscribeLink: text)
        full.brand = text
        full.texts = NotificationTexts(title: text, body: text, publicTitle: text, publicBody: text)
        full.params = [
            "array": [
                .string(text), .integer(-10), .integer(0), .integer(CanonicalJSON.integerMax), [], [:],
            ],
            "escaped \"key\"": .string(text), "false": false, "null": .null,
            "object": ["a": .string(text), "b": ["c": true]], "one": .string(text), "two": .string(text),
        ]
        full.referenceNames = ["escaped \"key\"", "none", "two"]
        (full.deepLink, full.thread, full.sound) = (text, text, text)
        (full.actionCategory, full.androidChannel) = (text, text)
        (full.number, full.badge) = (11, 99_999)
        full.rotateKeyBy = Instant(milliseconds: 1_800_000_000_000)
        var bare = Sample(language, privacy: privacy, interruption: interruption)
        bare.texts = NotificationTexts(title: text, body: text)
        (bare.params, bare.number, bare.badge) = ([:], nil, nil)
        (bare.deepLink, bare.thread, bare.sound) = (nil, nil, nil)
        (bare.actionCategory, bare.androidChannel, bare.collapse) = (nil, nil, nil)
        return [full, bare]
    }
}

extension PayloadTarget {
    fileprivate var suite: SealingSuite? {
        switch self {
        case .apns(_, let suite), .fcm(_, let suite), .expo(_, let suite): suite
        case .sms, .email: nil
        }
    }
}
