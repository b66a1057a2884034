import GateSteps
import GatewayPipeline

/// Answers a request with its page.
///
///     GET  /u/TOKEN      the state of the link; changes nothing, because mail scanners open links too
///     POST /u/TOKEN      mutes, whatever the body is, but for the page's own form, action=undo
///     GET  /u/style.css
///
/// Whatever is wrong with a token, the page is the same, byte for byte.
final class PageService: Sendable {
    private let handler: any UnsubscribeHandler
    private let preferencesURL: String?

    static let prefix = "/u/"
    /// The `Retry-After` of a request that was not served, in seconds.
    static let retrySeconds = 30

    init(handler: any UnsubscribeHandler, preferencesURL: String?) {
        self.handler = handler
        self.preferencesURL = preferencesURL
    }

    private var pages: Pages { Pages(brand: handler.brand, preferencesURL: preferencesURL) }

    /// What a request for `target` is counted as.
    func rateTarget(of target: String) -> PageRates.Target {
        guard let name = Self.parts(of: target)?.name else { return .other }
        if name == StyleSheet.name { return .styleSheet }
        return handler.isAuthentic(name) ? .link(name) : .other
    }

    /// What a target has after ``prefix`` and after its `?`, or `nil` where it leads elsewhere.
    private static func parts(of target: String) -> (name: String, query: String?)? {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = parts.first, path.hasPrefix(prefix) else { return nil }
        return (String(path.dropFirst(prefix.count)), parts.count > 1 ? String(parts[1]) : nil)
    }

    /// - Parameter reply: Called once, from any thread.
    func answer(_ request: PageRequest, reply: @escaping @Sendable (PageAnswer) -> Void) {
        guard request.method == "HEAD" else { return route(request, reply: reply) }
        var asGet = request
        asGet.method = "GET"
        route(asGet) { answer in
            var answer = answer
            answer.isHeadOnly = true
            reply(answer)
        }
    }

    private func route(_ request: PageRequest, reply: @escaping @Sendable (PageAnswer) -> Void) {
        let languages = AcceptLanguage.read(request.acceptLanguage)
        guard let (token, query) = Self.parts(of: request.target) else {
            return reply(PageAnswer(status: 404, body: pages.unknown(in: texts(for: languages))))
        }
        if token == StyleSheet.name { return reply(styleSheet(request)) }
        switch request.method {
        case "GET":
            let notice = query.flatMap(Pages.Notice.init(rawValue:))
            handler.standing(of: token) { [self] answer in reply(page(answer, notice ?? .none, languages)) }
        case "POST": perform(Self.action(of: request), token, languages, reply: reply)
        default: reply(notAllowed("GET, HEAD, POST", languages))
        }
    }

    // MARK: What a form asks for

    private enum Action { case mute, undo, oneClick }

    /// The token is the authority: a `POST` to it is a no, whatever its body is and however it is labelled (RFC 8058 section
    /// 3.1 lets a receiver act on the token alone, and mail programs and gateways in front of them send `text/plain`, no type
    /// at all, or the field twice). Only what a browser submits of the page's own form, `action=undo` and no byte beside
    /// it, takes a no back; where it is not certain what was meant, a no is taken for a no.
    private static func action(of request: PageRequest) -> Action {
        let type = request.contentType?.split(separator: ";").first?.trimming(while: {
            $0 == " " || $0 == "\t"
        })
        guard type?.lowercased() == "application/x-www-form-urlencoded" else { return .oneClick }
        switch request.body {
        case Array("action=mute".utf8): return .mute
        case Array("action=undo".utf8): return .undo
        default: return .oneClick
        }
    }

    private func perform(
        _ action: Action, _ token: String, _ languages: [String],
        reply: @escaping @Sendable (PageAnswer) -> Void
    ) {
        switch action {
        case .mute, .undo:
            let isUndo = action == .undo
            let answered: @Sendable (LinkAnswer) -> Void = { [self] answer in
                // What was done, or was too late, is shown by a page that can be loaded again without the form being sent
                // again. Relative: the prefix may be a proxy's.
                let query: String
                switch answer {
                case .known(let standing):
                    // It may still be off: by what was chosen before, or by somebody else with the mailbox.
                    query = isUndo && !standing.isOff ? "?\(Pages.Notice.undone.rawValue)" : ""
                case .tooLate: query = "?\(Pages.Notice.tooLate.rawValue)"
                case .unknown, .busy: return reply(page(answer, .none, languages))
                }
                reply(
                    PageAnswer(
                        status: 303, headers: [.init(name: "location", value: token + query)], body: []))
            }
            if isUndo { handler.undo(token, reply: answered) } else { handler.mute(token, reply: answered) }
        case .oneClick:
            handler.mute(token) { [self] answer in reply(page(answer, .none, languages)) }
        }
    }

    // MARK: Pages

    private func page(_ answer: LinkAnswer, _ notice: Pages.Notice, _ languages: [String]) -> PageAnswer {
        switch answer {
        case .unknown: return PageAnswer(status: 404, body: pages.unknown(in: texts(for: languages)))
        case .busy: return busy(languages)
        case .known(let standing), .tooLate(let standing):
            return PageAnswer(
                status: 200,
                body: pages.link(standing, notice, in: texts(for: [standing.locale] + languages)))
        }
    }

    private func texts(for wishes: [String?]) -> PageTexts { .for(wishes, under: handler.languages) }

    func busy(_ languages: [String] = []) -> PageAnswer {
        PageAnswer(
            status: 503, headers: [.init(name: "retry-after", value: "\(Self.retrySeconds)")],
            body: pages.busy(in: texts(for: languages)))
    }

    /// The answer to bytes that cannot be read as a request for one of these pages.
    func refusal(_ status: Int, _ languages: [String] = []) -> PageAnswer {
        PageAnswer(status: status, body: pages.wrong(in: texts(for: languages)))
    }

    private func notAllowed(_ methods: String, _ languages: [String]) -> PageAnswer {
        var answer = refusal(405, languages)
        answer.headers.append(.init(name: "allow", value: methods))
        return answer
    }

    private func styleSheet(_ request: PageRequest) -> PageAnswer {
        guard request.method == "GET" else { return notAllowed("GET, HEAD", []) }
        return PageAnswer(
            status: 200, contentType: "text/css; charset=utf-8", body: Array(StyleSheet.text.utf8))
    }
}
