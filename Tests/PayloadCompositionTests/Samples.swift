import CanonicalJSON
import GateTestKit
import GateVocabulary
import PayloadComposition
import SealedFormat

/// A remittance notice as the registry has it, in a language of choice.
struct Sample {
    static let languages = ["nb", "en"]

    let language: String
    var type = TypeID("transaction.remittance_sent")
    var number: Int? = 7
    var hasAlertRecord = true
    var category = Category.transactional
    var brand = "Drop"
    var texts: NotificationTexts
    var params: JSONObject
    var referenceNames = ["transaction_id"]
    var deepLink: String? = "drop://transactions/77"
    var thread: String? = "transaction"
    var sound: String? = "coins.caf"
    var actionCategory: String? = "TRANSACTION_ALERT"
    var androidChannel: String? = "transactional"
    var badge: Int? = 3
    let interruption: Interruption
    let privacy: PrivacyLevel
    let sentAt = Instant(seconds: 1_795_237_200)
    var expiresAt = Instant(seconds: 1_795_240_800)
    var collapse: Tag? = Tag(high: 0x0123_4567_89AB_CDEF, low: 42)
    let unsubscribeLink: String?
    var rotateKeyBy: Instant?

    init(
        _ language: String = "en", name: String = "Ahmad Karimi", privacy: PrivacyLevel = .full,
        interruption: Interruption = .timeSensitive, unsubscribeLink: String? = nil,
        hasPlainNumbers: Bool = false
    ) {
        self.language = language
        self.privacy = privacy
        self.interruption = interruption
        self.unsubscribeLink = unsubscribeLink
        params = [
            "amount": ["currency": "NOK", "minor": 500_000], "recipient_name": .string(name),
            "transaction_id": .string(Self.transaction),
        ]
        // A text that the rule refuses stands for what a payload has besides texts.
        let writtenName = (try? PlainTextRule().checked(name)).map { ParamValue.text($0) } ?? .literal(name)
        let values = ListedParams(
            [
                ("amount", .money(minor: 500_000, currency: "NOK")), ("recipient_name", writtenName),
                ("transaction_id", .literal(Self.transaction)),
            ], in: LanguageTag(language)!, hasPlainNumbers: hasPlainNumbers)
        let isNorwegian = language == "nb"
        let body = MessageText.plain(
            MessageTemplate(
                isNorwegian
                    ? [
                        .text("Du sendte "), .param("amount"), .text(" til "), .param("recipient_name"),
                        .text("."),
                    ]
                    : [
                        .text("You sent "), .param("amount"), .text(" to "), .param("recipient_name"),
                        .text("."),
                    ]))
        texts = NotificationTexts(
            title: isNorwegian ? "Penger sendt" : "Money sent", body: try! body.filled(with: values),
            publicTitle: isNorwegian ? "Overføring" : "Transfer")
    }

    var content: NotificationContent {
        NotificationContent(
            send: SendID(uuidText: "0b0f7f3a-6a3e-4b0e-9d5e-111111111111")!,
            message: MessageID(uuidText: "5c1e9f64-2f0e-4a53-8b7a-222222222222")!,
            type: type, number: number, hasAlertRecord: hasAlertRecord, category: category,
            tier: .important, brand: CountedText(brand), texts: texts,
            constantText: language == "nb"
                ? .init(
                    title: CountedText("Nytt varsel"), body: CountedText("Åpne appen for å se det."))
                : .init(
                    title: CountedText("New notification"), body: CountedText("Open the app to see it.")),
            params: params, referenceNames: referenceNames,
            deepLink: deepLink.map { CountedText($0) }, thread: thread.map { CountedText($0) },
            sound: sound, actionCategory: actionCategory.map { CountedText($0) },
            androidChannel: androidChannel, badge: badge, interruption: interruption, privacy: privacy,
            sentAt: sentAt, composedAt: sentAt, expiresAt: expiresAt, collapse: collapse,
            closedCollapse: Tag(high: 0x0123_4567_89AB_CDEF, low: 42),
            unsubscribeLink: unsubscribeLink.map { CountedText($0) },
            emailFooter: EmailFooter(
                unsubscribeWords: "To stop getting these e-mails, open this link:",
                sender: "Drop AS, Example Street 1, 0150 Oslo, Norway"), rotateKeyBy: rotateKeyBy)
    }

    static let transaction = "9b2d0f6e-3c58-4b1e-a7de-333333333333"

    /// Everything that would tell an outsider what this is about.
    static let telling = [
        "transaction", "remittance", "Ahmad", "Karimi", "500000", "5,000", "5\u{A0}000", "NOK",
        Sample.transaction,
        "drop://", "coins.caf", "TRANSACTION_ALERT", "transactional", "Money sent", "Penger sendt",
        "You sent",
        "Transfer", "Overføring", "\"badge\"", "thread",
    ]
}

extension ComposedPayload {
    /// What is sealed; `nil` in every other form.
    var innerContent: [UInt8]? { if case .sealed(let push) = content { push.sealedContent } else { nil } }

    /// The body with an envelope or a mark of the right length in it, whatever it says.
    func filledForTest() throws -> [UInt8] {
        switch content {
        case .sealed: try body.filled(with: body.insertionByteCount.map { TestEnvelope.bytes(count: $0) })
        case .open:
            try body.filled(with: [UInt8](repeating: UInt8(ascii: "M"), count: OriginMark.characterCount))
        case nil: try body.filled(with: nil)
        }
    }
}

extension PayloadBody {
    /// Everything but the insertion.
    var outside: [UInt8] {
        get throws {
            let (before, after) = try parts()
            return Array(before + after)
        }
    }
}

enum TestEnvelope {
    /// As many bytes as asked for, with as many quotation marks as an envelope has.
    static func bytes(count: Int) -> [UInt8] {
        let marks = [UInt8](repeating: UInt8(ascii: "\""), count: SealedEnvelope.quotationMarkCount)
        return marks + [UInt8](repeating: UInt8(ascii: "A"), count: count - marks.count)
    }
}

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }

    func contains(_ text: String) -> Bool { self.text.contains(text) }
}
