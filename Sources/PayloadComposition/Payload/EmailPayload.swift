import CanonicalJSON
import GateVocabulary

/// The last lines of an e-mail that a recipient can unsubscribe from.
///
/// The law asks for a way out that is clearly said, and for who writes with a postal address: 15 U.S.C. 7704(a)(3) and (5),
/// ePrivacy Directive 2002/58/EC Art. 13(4) with Directive 2000/31/EC Art. 5(1) and 6.
package struct EmailFooter: Hashable, Sendable {
    /// What stands before the link, in the language of the text.
    package let unsubscribeWords: String
    /// Name and postal address on one line.
    package let sender: String

    package init(unsubscribeWords: String, sender: String) {
        self.unsubscribeWords = unsubscribeWords
        self.sender = sender
    }
}

/// An e-mail as plain text: `{"subject": …, "text": …}`, and the headers that let a mail program unsubscribe.
enum EmailPayload {
    /// RFC 2369 section 3.2 and RFC 8058: one click, no login.
    static func writeHeaders(_ content: NotificationContent, to json: inout CanonicalWriter) {
        json.object { json in
            guard let link = content.unsubscribeLink else { return }
            json.member("list-unsubscribe", "<\(link.text)>")
            json.member("list-unsubscribe-post", "List-Unsubscribe=One-Click")
        }
    }

    static func write<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, as form: BodyForm, to json: inout Sink
    ) throws(CompositionError) {
        let (title, text): (String, String)
        switch form {
        case .sealed: throw .sealedWithoutKey
        case .generic: (title, text) = (content.constantText.title.text, content.constantText.body.text)
        case .full: (title, text) = (content.texts.title, content.texts.body)
        case .never: throw .formNever
        }
        json.object { json in
            json.member("subject") { content.writeBranded(title, to: &$0) }
            json.member("text") { json in
                json.quoted { json in
                    json.characters(text)
                    guard let link = content.unsubscribeLink else { return }
                    guard let footer = content.emailFooter else {
                        preconditionFailure(
                            "\(content.message) has a link to unsubscribe and no words before it")
                    }
                    json.characters("\n\n\(footer.unsubscribeWords)\n\(link.text)\n\n\(footer.sender)")
                }
            }
        }
    }
}
