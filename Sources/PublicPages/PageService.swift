import GateSteps
import GatewayPipeline

/// Which page a request gets.
///
///     GET  /u/TOKEN      how the link stands; changes nothing, so that whoever looks at links in mail changes nothing
///     POST /u/TOKEN      action=mute, action=undo, or List-Unsubscribe=One-Click (RFC 8058)
///     GET  /u/style.css
///
/// Whatever is wrong with a token, the page is the same, byte for byte.
final class PageService: Sendable {
    private let desk: any UnsubscribeDesk
    private let pages: Pages

    static let prefix = "/u/"
    /// How long somebody who was not served is asked to wait.
    static let retrySeconds = 30

    init(desk: any UnsubscribeDesk, preferencesURL: String?) {
        self.desk = desk
        pages = Pages(preferencesURL: preferencesURL)
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
        let parts = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = parts.first, path.hasPrefix(Self.prefix) else {
            return reply(PageAnswer(status: 404, body: pages.unknown(in: .for(languages))))
        }
        let token = String(path.dropFirst(Self.prefix.count))
        if token == StyleSheet.name { return reply(styleSheet(request)) }
        switch request.method {
        case "GET":
            let isUndone = parts.count > 1 && parts[1] == "undone"
            desk.standing(of: token) { [self] answer in
                reply(page(answer, isUndone ? .undone : .none, languages))
            }
        case "POST":
            let action: Action
            do throws(FormBody.Failure) {
                action = try Self.action(of: request)
            } catch {
                return reply(refusal(error == .unsupportedMediaType ? 415 : 400, languages))
            }
            perform(action, token, languages, reply: reply)
        default: reply(notAllowed("GET, HEAD, POST", languages))
        }
    }

    // MARK: What a form asks for

    private enum Action { case mute, undo, oneClick }

    private static func action(of request: PageRequest) throws(FormBody.Failure) -> Action {
        let fields = try FormBody.read(request.body, as: request.contentType)
        let known = fields.filter { $0.name == "action" || $0.name == "List-Unsubscribe" }
        guard known.count == 1, let field = known.first else { throw .malformed }
        switch (field.name, field.value) {
        case ("action", "mute"): return .mute
        case ("action", "undo"): return .undo
        case ("List-Unsubscribe", "One-Click"): return .oneClick
        default: throw .malformed
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
                guard case .known = answer else { return reply(page(answer, .tooLate, languages)) }
                // What was done is shown by a page that can be loaded again. Relative: the prefix may be a proxy's.
                reply(
                    PageAnswer(
                        status: 303,
                        headers: [.init(name: "location", value: isUndo ? "\(token)?undone" : token)],
                        body: []))
            }
            if isUndo { desk.undo(token, reply: answered) } else { desk.mute(token, reply: answered) }
        case .oneClick:
            desk.mute(token) { [self] answer in reply(page(answer, .none, languages)) }
        }
    }

    // MARK: Pages

    private func page(_ answer: LinkAnswer, _ notice: Pages.Notice, _ languages: [String]) -> PageAnswer {
        switch answer {
        case .unknown: return PageAnswer(status: 404, body: pages.unknown(in: .for(languages)))
        case .busy: return busy(languages)
        case .known(let standing):
            return PageAnswer(
                status: 200,
                body: pages.link(standing, notice, in: .for([standing.locale] + languages)))
        case .tooLate(let standing):
            return PageAnswer(
                status: 409,
                body: pages.link(standing, .tooLate, in: .for([standing.locale] + languages)))
        }
    }

    func busy(_ languages: [String] = []) -> PageAnswer {
        PageAnswer(
            status: 503, headers: [.init(name: "retry-after", value: "\(Self.retrySeconds)")],
            body: pages.busy(in: .for(languages)))
    }

    /// What was sent cannot be read as a request for one of these pages.
    func refusal(_ status: Int, _ languages: [String] = []) -> PageAnswer {
        PageAnswer(status: status, body: pages.wrong(in: .for(languages)))
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
