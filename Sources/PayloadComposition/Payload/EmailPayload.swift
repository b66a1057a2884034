import CanonicalJSON
import GateVocabulary

/// An e-mail as plain text: `{"subject": …, "text": …}`, and the headers that let a mail program unsubscribe.
enum EmailPayload {
    static func compose(
        _ content: NotificationContent, as form: BodyForm
    ) throws(CompositionError) -> ComposedPayload {
        let (title, text): (String, String)
        switch form {
        case .sealed: throw .sealedWithoutKey
        case .generic: (title, text) = (content.constantText.title, content.constantText.body)
        case .full: (title, text) = (content.texts.title, content.texts.body)
        case .never: throw .formNever
        }
        var headers: JSONObject = [:]
        var full = text
        if let link = content.unsubscribeLink {
            // RFC 2369 section 3.2 and RFC 8058: one click, no login.
            headers["list-unsubscribe"] = .string("<\(link)>")
            headers["list-unsubscribe-post"] = "List-Unsubscribe=One-Click"
            full += "\n\n\(link)"
        }
        let body: JSONObject = ["subject": .string("\(content.brand): \(title)"), "text": .string(full)]
        return ComposedPayload(headers: headers, body: PayloadBody(CanonicalJSON.write(body)))
    }
}
