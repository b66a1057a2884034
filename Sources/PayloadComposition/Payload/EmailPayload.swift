import CanonicalJSON
import GateVocabulary

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
                    if let link = content.unsubscribeLink { json.characters("\n\n\(link.text)") }
                }
            }
        }
    }
}
