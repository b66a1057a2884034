import CanonicalJSON
import GateVocabulary

/// What a mail system says of a message it took: a bounce (`multipart/report` with `message/delivery-status`, RFC 3464) or a
/// complaint (`message/feedback-report`, RFC 5965).
///
/// - Warning: Anybody can write such a message. A forged one can say no more than that a message failed whose identifiers its
///   author knows, so of a message that the author received.
enum MailReport {
    static func read(_ bytes: [UInt8]) -> InboundResult {
        guard let message = MailPart(bytes) else {
            return .refused(status: 400, reason: "the body is not a message with headers")
        }
        let parts = message.leaves
        guard
            let report = parts.first(where: {
                ["message/delivery-status", "message/feedback-report"].contains($0.type)
            })
        else { return .nothing }
        let original = parts.first {
            ["message/rfc822", "text/rfc822-headers", "message/global"].contains($0.type)
        }
        .flatMap { MailPart($0.body) }
        if report.type == "message/feedback-report" { return complaint(report, original) }
        return bounce(report, original)
    }

    private static func bounce(_ report: MailPart, _ original: MailPart?) -> InboundResult {
        // The first group is about the message, each further one about one recipient (RFC 3464 section 2.1).
        let groups = MailPart.groups(report.body)
        let reference =
            original.flatMap { $0.fields[MailMessage.referenceHeader] }.flatMap(
                DeliveryReference.init(header:))
            ?? groups.first.flatMap { $0["original-envelope-id"] }.flatMap(DeliveryReference.init(header:))
        guard let reference else {
            return .refused(
                status: 422, reason: "the bounce does not name the message: no \(MailMessage.referenceHeader)"
            )
        }
        // Each of our messages has one recipient.
        guard let recipient = groups.dropFirst().first(where: { $0["action"]?.lowercased() == "failed" }),
            let status = recipient["status"]?.split(separator: " ").first.map(String.init)
        else { return .nothing }
        return .pass([
            InboundReport(
                .receipt(reference, event(ofStatus: status), reason: "smtp_\(status)"),
                key: "bounce/\(reference.header)/\(status)")
        ])
    }

    /// RFC 3463 section 3, and the registry of https://www.iana.org/assignments/smtp-enhanced-status-codes.
    private static func event(ofStatus status: String) -> InboundReport.ReceiptEvent {
        switch status {
        // Bad destination mailbox or system, no longer here, null MX.
        case "5.1.1", "5.1.2", "5.1.6", "5.1.10": .tokenGone
        // Delivery time expired.
        case "4.4.7", "5.4.7": .expired
        default: .failed
        }
    }

    /// Who complains does not want more of it, which is what a reply that unsubscribes says; only the mailbox can be told to
    /// the gateway so.
    private static func complaint(_ report: MailPart, _ original: MailPart?) -> InboundResult {
        let fields = MailPart.groups(report.body).first ?? [:]
        guard ["abuse", "opt-out"].contains(fields["feedback-type"]?.lowercased()) else { return .nothing }
        guard let from = fields["original-rcpt-to"] ?? original?.fields["to"], Mailbox(sender: from) != nil
        else {
            return .refused(status: 422, reason: "the complaint does not say of which mailbox it is")
        }
        // Only who received the mail knows what the courier wrote there.
        guard let reference = original?.fields[MailMessage.referenceHeader],
            DeliveryReference(header: reference) != nil
        else {
            return .refused(
                status: 422,
                reason: "the complaint does not name the message: no \(MailMessage.referenceHeader)")
        }
        let message = original?.fields["message-id"] ?? reference
        guard message.utf8.count <= 110 else {
            return .refused(status: 422, reason: "the complaint does not say of which message it is")
        }
        return .pass([
            InboundReport(
                .reply(id: "complaint \(message)", channel: .email, from: from, text: complaintText),
                key: "complaint/\(message)")
        ])
    }

    /// A word of every starter bundle's `sms.revocation.words`.
    private static let complaintText = "unsubscribe"
}

extension DeliveryReference {
    /// The value of ``MailMessage/referenceHeader`` and of `ENVID`: the send, a dot, and the destination in hexadecimal digits,
    /// because an owner may call it as they like.
    package var header: String { "\(send.uuidText).\(Hexadecimal.encode(Array(destination.text.utf8)))" }

    init?(header: String) {
        let halves = header.filter { $0 != " " }.split(separator: ".")
        guard halves.count == 2, let send = SendID(uuidText: halves[0].lowercased()),
            let name = Hexadecimal.decode(halves[1].lowercased()),
            let destination = String(validating: name, as: UTF8.self), !destination.isEmpty
        else { return nil }
        self.init(send: send, destination: DestinationID(destination))
    }
}

/// One part of a message: its fields by lower-case name, the first of each, and its body as it was sent (RFC 2045, RFC 2046).
struct MailPart {
    /// Parts inside one another, and leaves in all.
    private static let (depthMax, countMax) = (8, 64)

    private(set) var fields: [String: String]
    private(set) var body: [UInt8]

    /// - Returns: `nil` for bytes that do not begin with a header field.
    init?(_ bytes: [UInt8]) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let blank =
            lines.firstIndex { $0.isEmpty || $0.elementsEqual([UInt8(ascii: "\r")]) } ?? lines.endIndex
        fields = Self.fields(lines[..<blank])
        guard !fields.isEmpty else { return nil }
        body = blank < lines.endIndex ? Array(bytes[lines[blank].endIndex...].dropFirst()) : []
        if fields["content-transfer-encoding"]?.lowercased() == "quoted-printable" {
            body = QuotedPrintable.decode(body)
        }
    }

    /// Media type in lower case, without parameters.
    var type: String {
        (fields["content-type"] ?? "text/plain").prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
    }

    /// The parts that have no parts, in order.
    var leaves: [MailPart] {
        var found: [MailPart] = []
        collect(&found, depth: 0)
        return found
    }

    private func collect(_ found: inout [MailPart], depth: Int) {
        guard found.count < Self.countMax else { return }
        guard type.hasPrefix("multipart/"), depth < Self.depthMax, let boundary = parameter("boundary") else {
            found.append(self)
            return
        }
        let marker = Array("--\(boundary)".utf8)
        var (part, isInside): ([UInt8], Bool) = ([], false)
        for line in body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard text.starts(with: marker) else {
                if isInside { part += line + [UInt8(ascii: "\n")] }
                continue
            }
            if isInside { MailPart(part)?.collect(&found, depth: depth + 1) }
            (part, isInside) = ([], !text.elementsEqual(marker + Array("--".utf8)))
        }
        if isInside { MailPart(part)?.collect(&found, depth: depth + 1) }
    }

    private func parameter(_ name: String) -> String? {
        for parameter in (fields["content-type"] ?? "").split(separator: ";").dropFirst() {
            let halves = parameter.split(separator: "=", maxSplits: 1)
            guard halves.count == 2, halves[0].filter({ $0 != " " && $0 != "\t" }).lowercased() == name else {
                continue
            }
            let value = halves[1].drop { $0 == " " }
            if value.first == "\"" { return String(value.dropFirst().prefix { $0 != "\"" }) }
            return String(value.prefix { $0 != " " })
        }
        return nil
    }

    /// The groups of fields that blank lines part.
    static func groups(_ bytes: [UInt8]) -> [[String: String]] {
        bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .split { $0.isEmpty || $0.elementsEqual([UInt8(ascii: "\r")]) }
            .prefix(countMax).map { fields($0) }
    }

    /// A field goes on in the lines that begin with a blank (RFC 5322 section 2.2.3).
    private static func fields(_ lines: some Sequence<ArraySlice<UInt8>>) -> [String: String] {
        var (fields, last): ([String: String], String?) = ([:], nil)
        for line in lines {
            let text = String(
                decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
            if let first = text.utf8.first, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t") {
                if let last { fields[last]! += " " + text.drop { $0 == " " || $0 == "\t" } }
                continue
            }
            guard let colon = text.firstIndex(of: ":") else { continue }
            let name = text[..<colon].lowercased()
            last = nil
            if fields[name] == nil {
                fields[name] = String(text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
                last = name
            }
        }
        return fields
    }
}
