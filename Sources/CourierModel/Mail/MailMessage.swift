import CanonicalJSON
package import GateVocabulary

/// Who writes the mails of a courier.
package struct MailSender: Sendable, Hashable {
    /// `local@domain`, in `From`.
    package var address: String
    /// Display name, in any script.
    package var name: String?
    /// Where bounces go (`MAIL FROM`); ``address`` where it is `nil`.
    package var bounceAddress: String?
    package var replyTo: String?

    /// A domain outside ASCII becomes A-labels (RFC 5890), which every relay takes.
    package init(address: String, name: String? = nil, bounceAddress: String? = nil, replyTo: String? = nil) {
        self.address = Self.spelling(address)
        self.name = name
        self.bounceAddress = bounceAddress.map(Self.spelling)
        self.replyTo = replyTo.map(Self.spelling)
    }

    /// A mailbox that ``RegisteredMailbox`` does not know, such as one outside ASCII before the `@`, stays as it is.
    private static func spelling(_ mailbox: String) -> String {
        RegisteredMailbox(mailbox)?.spelling ?? mailbox
    }

    /// The member that cannot stand in a mail, and why; `nil` when all can.
    package var fault: String? {
        for mailbox in [address, bounceAddress, replyTo] {
            if let mailbox, MailMessage.refusal(ofMailbox: mailbox) != nil {
                return "`\(mailbox)` is no mailbox"
            }
        }
        if let name, HeaderText.hasControl(name) { return "the name of the sender has control characters" }
        return nil
    }
}

/// One e-mail: its envelope and its content (RFC 5322, MIME).
///
/// The gateway composes `{"subject", "text", "html"?}` as the body and `list-unsubscribe` with `list-unsubscribe-post` as headers;
/// both headers are written as they come (RFC 8058). The relay signs (DKIM), because it has the domain's key.
package struct MailMessage: Sendable, Hashable {
    /// Names the send and the destination in a bounce, which brings the headers back (RFC 3464 section 2, RFC 6522).
    package static let referenceHeader = "x-sendgate-delivery"

    /// Why an order is no mail that could be sent. The same on every try.
    package struct Refusal: Error, Hashable, CustomStringConvertible {
        package var reason: String
        init(_ reason: String) { self.reason = reason }
        package var description: String { "the order is no e-mail: \(reason)" }
    }

    /// `MAIL FROM`.
    package let sender: String
    /// `RCPT TO`.
    package let recipient: String
    /// Whether a mailbox is outside ASCII, so that the relay must speak SMTPUTF8 (RFC 6531).
    package let needsSMTPUTF8: Bool
    /// For `ENVID` (RFC 3461 section 4.4).
    package let reference: String
    /// Every line ends with CRLF and has at most 76 characters where there is a place to fold.
    package let content: [UInt8]

    /// - Parameter now: For `Date`.
    package init(_ order: DeliveryOrder, from sender: MailSender, at now: Instant) throws(Refusal) {
        guard case .object(let body) = order.body, case .string(let subject)? = body["subject"],
            case .string(let text)? = body["text"]
        else { throw Refusal("body_without_subject_or_text") }
        if let refusal = Self.refusal(ofMailbox: order.token) { throw refusal }
        self.sender = sender.bounceAddress ?? sender.address
        recipient = order.token
        needsSMTPUTF8 = ![self.sender, recipient, sender.address, sender.replyTo ?? ""].allSatisfy {
            $0.utf8.allSatisfy { $0 < 0x80 }
        }
        reference = DeliveryReference(order).header

        let domain = sender.address[sender.address.lastIndex(of: "@")!...].dropFirst()
        var fields: [(String, String)] = [
            ("Date", now.httpDate.replacing("GMT", with: "+0000")),
            ("From", HeaderText.mailbox(sender.address, name: sender.name)),
            ("To", HeaderText.mailbox(recipient, name: nil)),
            ("Subject", HeaderText.unstructured(subject, after: "Subject: ".count)),
            ("Message-ID", "<\(order.message.uuidText)@\(domain)>"),
            ("X-Sendgate-Delivery", HeaderText.folded(reference)),
            // RFC 3834: no holiday notice comes back.
            ("Auto-Submitted", "auto-generated"), ("MIME-Version", "1.0"),
        ]
        if let replyTo = sender.replyTo { fields.insert(("Reply-To", "<\(replyTo)>"), at: 2) }
        for (name, field) in [
            ("list-unsubscribe", "List-Unsubscribe"), ("list-unsubscribe-post", "List-Unsubscribe-Post"),
        ] {
            guard let value = order.headers[name] else { continue }
            guard value.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }),
                value.utf8.count <= HeaderText.lineBytesMax
            else { throw Refusal("\(name)_not_printable") }
            fields.append((field, HeaderText.folded(value)))
        }
        guard !HeaderText.hasControl(subject) else { throw Refusal("subject_with_control_character") }

        let plain = Self.part("plain", text)
        var bytes = Array(fields.map { "\($0.0): \($0.1)\r\n" }.joined().utf8)
        if case .string(let html)? = body["html"] {
            // Quoted-printable never has `=` before `_`, so the boundary stands in neither part (RFC 2045 section 6.7).
            let boundary = "=_\(order.message.uuidText)"
            bytes += "Content-Type: multipart/alternative;\r\n boundary=\"\(boundary)\"\r\n\r\n".utf8
            // The line break before a boundary belongs to the boundary (RFC 2046 section 5.1.1).
            for part in [plain, Self.part("html", html)] {
                bytes += Array("--\(boundary)\r\n".utf8) + part + Array("\r\n".utf8)
            }
            bytes += "--\(boundary)--\r\n".utf8
        } else {
            bytes += plain
        }
        content = bytes
    }

    private static func part(_ subtype: String, _ text: String) -> [UInt8] {
        Array(
            "Content-Type: text/\(subtype); charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
                .utf8)
            + QuotedPrintable.encode(text)
    }

    /// A mailbox goes between angle brackets in a command and in a header, so nothing in it may end either.
    static func refusal(ofMailbox text: String) -> Refusal? {
        let halves = text.split(separator: "@", omittingEmptySubsequences: false)
        let isSafe = text.unicodeScalars.allSatisfy {
            $0.value > 0x20 && $0.value != 0x7F && !(0x80...0xA0).contains($0.value)
                && !"<>,;:\\\"()".unicodeScalars.contains($0)
        }
        guard isSafe, halves.count == 2, !halves[0].isEmpty, !halves[1].isEmpty,
            text.utf8.count <= 320
        else { return Refusal("mailbox_invalid") }
        return nil
    }
}

/// The content of a message between `354` and the answer: a dot before each line that begins with one (RFC 5321 section 4.5.2).
/// The line with the last dot is not part of it.
package enum DotStuffing {
    /// - Parameter content: Lines that end with CRLF.
    package static func encode(_ content: [UInt8]) -> [UInt8] {
        var stuffed: [UInt8] = []
        stuffed.reserveCapacity(content.count + 64)
        var isLineStart = true
        for byte in content {
            if isLineStart, byte == UInt8(ascii: ".") { stuffed.append(byte) }
            stuffed.append(byte)
            isLineStart = byte == UInt8(ascii: "\n")
        }
        return stuffed
    }
}
