import GateSteps
import GateVocabulary
import PayloadComposition

/// Builds the pages, as bytes.
struct Pages: Sendable {
    /// Whose messages the pages are about.
    let brand: String
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
            content.append(subject(of: standing, in: texts))
            if let until = standing.undoableUntil {
                content.append(Self.undoHint(until, of: standing, in: texts))
                content.append(Self.form(action: "undo", label: texts.undo, isQuiet: true))
            } else if notice != .none, standing.wasMuted {
                say(texts.tooLate, asStatus: true)
            }
        } else {
            switch notice {
            case .undone where standing.isUndone: say(texts.undone, asStatus: true)
            case .undone where standing.wasMuted, .tooLate where standing.wasMuted:
                say(texts.alreadyOn, asStatus: true)
            case .none, .undone, .tooLate: break
            }
            content.append(subject(of: standing, in: texts))
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

    /// Whose messages, of what kind and by which channel; without the recipient's name or address.
    private func subject(of standing: LinkStanding, in texts: PageTexts) -> HTML {
        let kind = texts.categories[standing.category] ?? standing.category.rawValue
        let channel = texts.channels[standing.channel] ?? standing.channel.rawValue
        return .element(
            "dl", .element("dt", .text(texts.from)), .element("dd", .text(brand)),
            .element("dt", .text(texts.kind)), .element("dd", .text("\(kind), \(channel)")))
    }

    /// Says until when a mute can be undone, by the person's clock, or that of UTC where their zone is not known.
    private static func undoHint(_ until: Instant, of standing: LinkStanding, in texts: PageTexts) -> HTML {
        let time = MomentText.timeOfDay(until, utcOffsetSeconds: standing.utcOffsetSeconds)
        let around = texts.undoHint.split(separator: PageTexts.timePlace, omittingEmptySubsequences: false)
        return .element(
            "p", .text(String(around.first ?? "")),
            .element("time", ["datetime": until.rfc3339], .text(time)),
            .text(around.count > 1 ? String(around[1]) : ""))
    }

    /// Posts to the page's own address, under whatever prefix it is reached.
    ///
    /// - Parameter isQuiet: Whether the button is drawn as an outline, so that it does not ask to be pressed.
    private static func form(action: String, label: String, isQuiet: Bool = false) -> HTML {
        .element(
            "form", ["method": "post"],
            .element("input", ["type": "hidden", "name": "action", "value": action]),
            isQuiet
                ? .element("button", ["type": "submit", "class": "quiet"], .text(label))
                : .element("button", ["type": "submit"], .text(label)))
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
                    .element("title", .text("\(title) – \(brand)")),
                    .element("link", ["rel": "stylesheet", "href": StyleSheet.name])),
                .element(
                    "body",
                    .node("main", [], [.element("h1", .text(title))] + content))))
    }
}
