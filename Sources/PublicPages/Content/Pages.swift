import GateSteps
import GateVocabulary

/// Builds the pages, as bytes.
struct Pages: Sendable {
    /// The app's page for all other preferences; `nil` leaves the link out.
    let preferencesURL: String?

    /// What a link's own page says above its button, by the query that a form's answer leads to. A query that the
    /// state of the link does not bear out says nothing: anyone can write one behind a link.
    enum Notice: String {
        case none = ""
        case undone
        case tooLate = "late"
    }

    /// A link's page: its state, and the one change that it can make.
    func link(_ standing: LinkStanding, _ notice: Notice, in texts: PageTexts) -> [UInt8] {
        var content: [HTML] = []
        func say(_ text: String, asStatus isStatus: Bool = false) {
            content.append(
                isStatus ? .element("p", ["role": "status"], .text(text)) : .element("p", .text(text)))
        }
        if standing.isOff {
            say(texts.done, asStatus: true)
            content.append(Self.subject(of: standing, in: texts))
            if standing.undoableUntil != nil {
                say(texts.undoHint)
                content.append(Self.form(action: "undo", label: texts.undo))
            } else if notice == .tooLate, standing.wasMuted {
                say(texts.tooLate, asStatus: true)
            }
        } else {
            switch notice {
            case .undone where standing.isUndone: say(texts.undone, asStatus: true)
            case .tooLate where standing.wasMuted: say(texts.alreadyOn, asStatus: true)
            case .none, .undone, .tooLate: break
            }
            content.append(Self.subject(of: standing, in: texts))
            say(texts.ask)
            content.append(Self.form(action: "mute", label: texts.stop))
        }
        return page(standing.isOff ? texts.doneTitle : texts.askTitle, content, in: texts)
    }

    func unknown(in texts: PageTexts) -> [UInt8] {
        page(texts.unknownTitle, [.element("p", .text(texts.unknown))], in: texts)
    }

    func busy(in texts: PageTexts) -> [UInt8] {
        page(texts.busyTitle, [.element("p", ["role": "status"], .text(texts.busy))], in: texts)
    }

    func wrong(in texts: PageTexts) -> [UInt8] {
        page(texts.wrongTitle, [.element("p", ["role": "status"], .text(texts.wrong))], in: texts)
    }

    /// The kind of message and the channel, without a name or an address.
    private static func subject(of standing: LinkStanding, in texts: PageTexts) -> HTML {
        .element(
            "dl", .element("dt", .text(texts.kind)),
            .element("dd", .text(texts.categories[standing.category] ?? standing.category.rawValue)),
            .element("dt", .text(texts.channel)),
            .element("dd", .text(texts.channels[standing.channel] ?? standing.channel.rawValue)))
    }

    /// Posts to the page's own address, under whatever prefix it is reached.
    private static func form(action: String, label: String) -> HTML {
        .element(
            "form", ["method": "post"],
            .element("input", ["type": "hidden", "name": "action", "value": action]),
            .element("button", ["type": "submit"], .text(label)))
    }

    private func page(_ title: String, _ content: [HTML], in texts: PageTexts) -> [UInt8] {
        var content = content
        if let preferencesURL {
            content.append(
                .element(
                    "p",
                    .element(
                        "a", ["href": preferencesURL, "rel": "noreferrer"], .text(texts.settings))))
        }
        return HTML.document(
            .element(
                "html", ["lang": texts.language],
                .element(
                    "head", .element("meta", ["charset": "utf-8"]),
                    .element(
                        "meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"]),
                    .element("title", .text(title)),
                    .element("link", ["rel": "stylesheet", "href": StyleSheet.name])),
                .element(
                    "body",
                    .node("main", [], [.element("h1", .text(title))] + content))))
    }
}
