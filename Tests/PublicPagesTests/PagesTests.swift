import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import Logging
import NIOCore
import Synchronization
import Testing
import UnixSocketEndpoint
import UnixSockets

@testable import PublicPages

/// A handler with one link, that remembers what it was asked.
final class FakeHandler: UnsubscribeHandler {
    struct State {
        var isOff = false
        var undoableUntil: Instant?
        var wasMuted = false
        var isUndone = false
        var locale: String?
        var languages = ReaderLanguages.english
        var isBusy = false
        var asked: [String] = []
        /// Answers that are kept back.
        var kept: [@Sendable () -> Void] = []
        var keeps = false
    }
    static let token = String(repeating: "T", count: 76)
    let state = Mutex(State())
    let brand = "Drop"

    var languages: ReaderLanguages { state.withLock { $0.languages } }

    func isAuthentic(_ token: String) -> Bool { token == Self.token }

    private func answer(
        _ what: String, _ token: String, _ reply: @escaping @Sendable (LinkAnswer) -> Void,
        _ change: (inout State) -> Bool = { _ in true }
    ) {
        let answer: LinkAnswer? = state.withLock { state in
            state.asked.append("\(what) \(token)")
            if state.keeps {
                state.kept.append { reply(.unknown) }
                return nil
            }
            if state.isBusy { return .busy }
            guard token == Self.token else { return .unknown }
            let isDone = change(&state)
            let standing = LinkStanding(
                category: .marketing, channel: .email, locale: state.locale, isOff: state.isOff,
                undoableUntil: state.undoableUntil, utcOffsetSeconds: 7_200, wasMuted: state.wasMuted,
                isUndone: state.isUndone)
            return isDone ? .known(standing) : .tooLate(standing)
        }
        if let answer { reply(answer) }
    }

    func standing(of token: String, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        answer("look", token, reply)
    }
    func mute(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        answer("mute", token, reply) { state in
            if !state.isOff { state.undoableUntil = Instant(seconds: 900) }
            state.isOff = true
            (state.wasMuted, state.isUndone) = (true, false)
            return true
        }
    }
    func undo(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        answer("undo", token, reply) { state in
            guard state.undoableUntil != nil else { return false }
            state.isOff = false
            state.isUndone = true
            state.undoableUntil = nil
            return true
        }
    }
}

/// Pages over real sockets.
@Suite struct PagesTests {
    private let handler = FakeHandler()
    private let path = "/u/\(FakeHandler.token)"

    private func serve(
        on address: PageAddress = .loopback(port: 0), preferences: String? = "https://example.com/settings",
        limits: PageLimits = PageLimits(), _ body: (PageAddress) async throws -> Void
    ) async throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let pages = PublicPages(
            on: try PageSocket(address), handler: handler, preferencesURL: preferences, limits: limits,
            logger: logger)
        try await pages.start()
        do {
            try await body(pages.address)
        } catch {
            await pages.shutDown()
            throw error
        }
        await pages.shutDown()
    }

    private func asked() -> [String] { handler.state.withLock { $0.asked } }

    // MARK: What is answered

    @Test func `a look shows the page and changes nothing, a HEAD the same without it`() async throws {
        try await serve { address in
            let page = try PageClient.get(address, path)
            #expect(page.status == 200)
            #expect(page.headers["content-type"] == "text/html; charset=utf-8")
            #expect(page.headers["content-length"] == "\(page.body.count)")
            #expect(
                page.headers["content-security-policy"]
                    == "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
            )
            #expect(page.headers["cache-control"] == "no-store")
            #expect(page.headers["referrer-policy"] == "no-referrer")
            #expect(page.headers["x-content-type-options"] == "nosniff")
            #expect(page.headers["x-robots-tag"] == "noindex")
            #expect(page.headers["connection"] == "close")
            #expect(page.headers["date"]?.hasSuffix(" GMT") == true)
            #expect(page.headers["set-cookie"] == nil)
            #expect(page.text.contains("<title>Unsubscribe – Drop</title>"))
            #expect(page.text.contains("<dt>From</dt><dd>Drop</dd>"))
            #expect(page.text.contains("<dd>Offers and news, by e-mail</dd>"))
            #expect(page.text.contains(#"<input type="hidden" name="action" value="mute">"#))
            #expect(page.text.contains(#"href="https://example.com/settings""#))
            var head = try PageClient.get(address, path, method: "HEAD")
            #expect(head.body.isEmpty)
            head.headers["date"] = page.headers["date"]
            #expect(head.status == page.status && head.headers == page.headers)
            #expect(asked() == ["look \(FakeHandler.token)", "look \(FakeHandler.token)"])
            #expect(handler.state.withLock { !$0.isOff })
        }
    }

    /// What a scanner of links or a proxy may make of a link: none of it is a form that was sent.
    @Test(arguments: ["GET", "HEAD"])
    func `a look stays one whatever comes with it`(method: String) async throws {
        try await serve { address in
            var plain = try PageClient.get(address, path, method: method)
            #expect(plain.status == 200 && plain.body.isEmpty == (method == "HEAD"))
            plain.headers["date"] = nil
            let form = "Host: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            let length = "\(form)Content-Length: 11\r\n\r\naction=mute"
            let chunked = "\(form)Transfer-Encoding: chunked\r\n\r\nb\r\naction=mute\r\n0\r\n\r\n"
            let requests = [
                "\(method) \(path) HTTP/1.1\r\n\(length)", "\(method) \(path) HTTP/1.1\r\n\(chunked)",
                "\(method) \(path)?action=mute HTTP/1.1\r\nHost: a\r\n\r\n",
                "\(method) \(path)?List-Unsubscribe=One-Click HTTP/1.1\r\nHost: a\r\n\r\n",
                "\(method) \(path)?action=mute HTTP/1.1\r\n\(length)",
            ]
            for request in requests {
                var answer = try PageClient.ask(address, request)
                answer.headers["date"] = nil
                #expect(answer == plain, "\(request)")
            }
            #expect(asked() == Array(repeating: "look \(FakeHandler.token)", count: 1 + requests.count))
            #expect(handler.state.withLock { !$0.isOff })
        }
    }

    @Test func `a query says nothing that the link does not bear out`() async throws {
        try await serve(preferences: nil) { address in
            func body(_ query: String) throws -> String {
                let page = try PageClient.get(address, path + query)
                #expect(page.status == 200)
                return page.text
            }
            let unused = try body("")
            for query in ["?undone", "?late"] {
                let text = try body(query)
                #expect(text.hasSuffix(unused.drop { $0 != "<" }), "\(query)")
                #expect(!text.contains(#"role="status""#), "\(query)")
            }
            // Switched on again by other means: nothing was taken back.
            handler.state.withLock { ($0.wasMuted, $0.isUndone) = (true, false) }
            #expect(try !body("?undone").contains("Undone"))
            for query in ["?undone", "?late"] {
                #expect(try body(query).contains("There is nothing to undo"), "\(query)")
            }
            // Undone of others who have the mailbox, and not of who chose by other means since.
            handler.state.withLock { $0.isOff = true }
            for query in ["?undone", "?late"] {
                #expect(try body(query).contains("cannot be undone now"), "\(query)")
            }
            #expect(try !body("").contains("cannot be undone"))
            // Off by the app's own switch, and no link was used.
            handler.state.withLock { ($0.isOff, $0.wasMuted) = (true, false) }
            #expect(try !body("?late").contains("cannot be undone") && !body("?undone").contains("Undone."))
        }
    }

    @Test func `a form mutes, and takes it back while that is possible`() async throws {
        try await serve(preferences: nil) { address in
            let muted = try PageClient.post(address, path, "action=mute")
            #expect(muted.status == 303 && muted.headers["location"] == FakeHandler.token)
            #expect(muted.headers["content-length"] == "0")
            let done = try PageClient.get(address, path)
            #expect(
                done.text.contains(#"<p role="status">You will not get these messages here any more.</p>"#))
            #expect(done.text.contains(#"value="undo""#) && !done.text.contains(#"value="mute""#))
            // Until when, by the person's clock; and the way back does not ask to be pressed.
            #expect(
                done.text.contains(
                    #"You can undo this until <time datetime="1970-01-01T00:15:00Z">02:15 (UTC+2)</time>."#))
            #expect(done.text.contains(#"<button type="submit" class="quiet">Undo</button>"#))
            #expect(!done.text.contains("href=\"https"))
            let undone = try PageClient.post(address, path, "action=undo")
            #expect(undone.status == 303 && undone.headers["location"] == "\(FakeHandler.token)?undone")
            let again = try PageClient.get(address, path + "?undone")
            #expect(
                again.text.contains(#"<p role="status">Undone."#) && again.text.contains(#"value="mute""#))
            // A double click, or a tab that still shows the button: nothing is left to take back. The page that says so can
            // be loaded again without the form being sent again, and claims of no message that it is off.
            let late = try PageClient.post(address, path, "action=undo")
            #expect(late.status == 303 && late.headers["location"] == "\(FakeHandler.token)?late")
            let told = try PageClient.get(address, path + "?late")
            #expect(told.status == 200 && told.text.contains(#"<p role="status">There is nothing to undo"#))
            #expect(!told.text.contains("cannot be undone") && told.text.contains(#"value="mute""#))
            #expect(handler.state.withLock { !$0.isOff })
            // Muted again, and its quarter of an hour is over.
            _ = try PageClient.post(address, path, "action=mute")
            handler.state.withLock { $0.undoableUntil = nil }
            let over = try PageClient.post(address, path, "action=undo")
            #expect(over.status == 303 && over.headers["location"] == "\(FakeHandler.token)?late")
            let stands = try PageClient.get(address, path + "?late")
            #expect(stands.status == 200 && stands.text.contains("cannot be undone"))
            #expect(!stands.text.contains("<form"))
            #expect(handler.state.withLock { $0.isOff })
        }
    }

    @Test(arguments: [
        ("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click"),
        ("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click\r\n"),
        ("Application/X-WWW-Form-URLEncoded; charset=utf-8", "List%2DUnsubscribe=One%2dClick"),
        (
            "multipart/form-data; boundary=----b17",
            "------b17\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n------b17--\r\n"
        ),
        (
            "multipart/form-data; boundary=\"a b\"",
            "--a b\r\ncontent-type: text/plain\r\ncontent-disposition: form-data; name=List-Unsubscribe\r\n\r\nOne-Click\r\n--a b--"
        ),
    ])
    func `one click mutes and is answered at once`(type: String, body: String) async throws {
        try await serve { address in
            let answer = try PageClient.post(address, path, body, as: type)
            #expect(answer.status == 200 && answer.text.contains("You are unsubscribed"), "\(answer.text)")
            #expect(asked() == ["mute \(FakeHandler.token)"])
            let again = try PageClient.post(address, path, body, as: type)
            #expect((again.status, again.body) == (answer.status, answer.body))
        }
    }

    @Test(
        arguments: [
            ("text/plain", "List-Unsubscribe=One-Click"), (nil, "action=mute"), (nil, ""),
            ("text/plain", "action=undo"), ("application/json", "{\"action\":\"mute\"}"),
            ("application/x-www-form-urlencoded", ""),
            ("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click&List-Unsubscribe=One-Click"),
            ("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click&action=undo"),
            ("application/x-www-form-urlencoded", "list-unsubscribe=one-click"),
            // Whatever a mail program or a gateway before it adds to the one click, or makes of its name.
            ("application/x-www-form-urlencoded", "action=undo&List-Unsubscribe=One-Click"),
            ("application/x-www-form-urlencoded", "list-unsubscribe=One-Click&action=undo"),
            ("application/x-www-form-urlencoded", "LIST-UNSUBSCRIBE=One-Click&action=undo"),
            ("application/x-www-form-urlencoded", "List_Unsubscribe=One-Click&action=undo"),
            ("application/x-www-form-urlencoded", "List-Unsubscribe+=One-Click&action=undo"),
            ("application/x-www-form-urlencoded", "action=undo&utm_source=mail"),
            ("application/x-www-form-urlencoded", "x=1&action=undo"),
            ("application/x-www-form-urlencoded", "action=undo&"),
            ("application/x-www-form-urlencoded", "&action=undo"),
            ("application/x-www-form-urlencoded", "Action=undo"),
            ("application/x-www-form-urlencoded", "action=Undo"),
            ("application/x-www-form-urlencoded", "action=undo\r\nList-Unsubscribe=One-Click"),
            (
                "multipart/form-data; boundary=b",
                "--b\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nundo\r\n--b--\r\n"
            ),
            (
                "multipart/form-data; boundary=b",
                "--b\r\nContent-Disposition: form-data; name=\"list-unsubscribe\"\r\n\r\nOne-Click\r\n--b\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nundo\r\n--b--\r\n"
            ),
            ("application/x-www-form-urlencoded", "action=erase"),
            ("application/x-www-form-urlencoded", "action=mute&action=undo"),
            ("application/x-www-form-urlencoded", "action=undo&action=undo"),
            ("application/x-www-form-urlencoded", "action=%zz"),
            ("application/x-www-form-urlencoded", "action=%ff"),
            ("application/x-www-form-urlencoded", "a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&action=undo"),
            ("multipart/form-data", "action=undo"), ("multipart/form-data; boundary=b", "--b\r\n\r\nx"),
            (
                "multipart/form-data; boundary=b",
                "--b\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nundo"
            ),
            ("multipart/form-data; boundary=b", "--c--"),
        ] as [(String?, String)])
    func `a POST to a token is a no, whatever its body is`(type: String?, body: String) async throws {
        try await serve { address in
            let answer = try PageClient.post(address, path, body, as: type)
            #expect(answer.status == 200 && answer.text.contains("You are unsubscribed"), "\(answer.text)")
            #expect(asked() == ["mute \(FakeHandler.token)"])
            #expect(handler.state.withLock { $0.isOff })
        }
    }

    @Test func `a body over the bound does nothing`() async throws {
        try await serve { address in
            let body = String(repeating: "a", count: PageLimits().bodyByteCountMax + 1)
            let answer = try PageClient.post(address, path, body, as: "text/plain")
            #expect(answer.status == 413)
            #expect(asked().isEmpty)
        }
    }

    @Test func `whatever is wrong with a token, the answer is the same`() async throws {
        try await serve { address in
            let tokens = [
                "nonsense", "", String(FakeHandler.token.dropLast()), FakeHandler.token + "A", "%00", "a/b",
                "..",
                String(repeating: "U", count: 76), String(repeating: "x", count: 4_000),
            ]
            var first = try PageClient.get(address, "/u/" + tokens[0])
            #expect(first.status == 404)
            first.headers["date"] = nil
            for token in tokens {
                for form in [nil, "action=mute", "action=undo", "List-Unsubscribe=One-Click"] {
                    var answer =
                        try form.map { try PageClient.post(address, "/u/" + token, $0) }
                        ?? PageClient.get(address, "/u/" + token)
                    answer.headers["date"] = nil
                    #expect(answer == first, "\(token) \(form ?? "GET")")
                }
            }
            // Each was asked about: none was told by what it looks like.
            #expect(asked().count == 1 + tokens.count * 4)
            for target in ["/", "/index.html", "/U/x", "*", "/v1/types"] {
                let answer = try PageClient.get(address, target)
                #expect(answer.status == 404 && answer.body == first.body, "\(target)")
            }
        }
    }

    @Test func `the language is the person's, then the browser's, then English`() async throws {
        try await serve { address in
            let wishes: [(wish: String?, language: String)] = [
                (nil, "en"), ("sq;q=0.3, bs-BA, en;q=0.9", "bs"), ("no", "nb"), ("nn-NO", "nb"),
                ("de, *;q=0.5", "en"), ("bs;q=0, sq;q=0.1", "sq"), ("bs;q=2, ;;,=,sq;q=x", "en"),
            ]
            for (wish, language) in wishes {
                let page = try PageClient.get(address, path, language: wish)
                #expect(page.text.contains(#"<html lang="\#(language)">"#), "\(wish ?? "none")")
            }
            handler.state.withLock { $0.locale = "nb-NO" }
            let page = try PageClient.get(address, path, language: "sq")
            #expect(page.text.contains(#"<html lang="nb">"#))
        }
    }

    @Test func `a language without texts leads to one that its readers read, then to the bundle's first`()
        async throws
    {
        handler.state.withLock {
            $0.languages = ReaderLanguages(
                first: LanguageTag("sq")!, alsoRead: ["hr": LanguageTag("bs")!, "da": LanguageTag("nb")!])
        }
        try await serve { address in
            let wishes = [
                ("hr-HR, en;q=0.5", "bs"), ("da", "nb"), ("de, *;q=0.5", "sq"), ("de, en;q=0.1", "en"),
            ]
            for (wish, language) in wishes {
                for target in [path, "/u/elsewhere"] {
                    let page = try PageClient.get(address, target, language: wish)
                    #expect(page.text.contains(#"<html lang="\#(language)">"#), "\(wish)")
                }
            }
            handler.state.withLock { $0.locale = "hr" }
            let page = try PageClient.get(address, path, language: "en")
            #expect(page.text.contains(#"<html lang="bs">"#))
        }
    }

    @Test func `the style sheet is the only other thing there is`() async throws {
        try await serve { address in
            let style = try PageClient.get(address, "/u/style.css")
            #expect(style.status == 200 && style.headers["content-type"] == "text/css; charset=utf-8")
            #expect(
                style.text.contains("prefers-color-scheme: dark") && style.text.contains(":focus-visible"))
            #expect(!style.text.contains("url(") && !style.text.contains("@import"))
            let answer1 = try PageClient.post(address, "/u/style.css", "")
            #expect(answer1.headers["allow"] == "GET, HEAD")
            for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
                let answer = try PageClient.get(address, path, method: method)
                #expect(answer.status == 405 && answer.headers["allow"] == "GET, HEAD, POST", "\(method)")
            }
        }
    }

    @Test func `a busy gate is a page that says when to come back`() async throws {
        handler.state.withLock { $0.isBusy = true }
        try await serve { address in
            let answer = try PageClient.post(address, path, "action=mute")
            #expect(answer.status == 503 && answer.headers["retry-after"] == "30")
            #expect(answer.text.contains("nothing was changed"))
        }
    }

    // MARK: Bounds

    @Test func `what is too long is refused before it is kept`() async throws {
        try await serve { address in
            let long = String(repeating: "a", count: 17 * 1024)
            let header = try PageClient.ask(
                address, "GET /u/x HTTP/1.1\r\nHost: a\r\nX-Long: \(long)\r\n\r\n")
            #expect(header.status == 431)
            let many = String(repeating: "X: y\r\n", count: 100)
            let answer2 = try PageClient.ask(address, "GET /u/x HTTP/1.1\r\n\(many)\r\n")
            #expect(answer2.status == 431)
            let body = String(repeating: "a", count: 4 * 1024 + 1)
            let answer3 = try PageClient.post(address, path, body)
            #expect(answer3.status == 413)
            let chunk = String(repeating: "a", count: 0x800)
            let chunks = String(repeating: "800\r\n\(chunk)\r\n", count: 3)
            let chunked = try PageClient.ask(
                address,
                "POST \(path) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n\(chunks)0\r\n\r\n"
            )
            #expect(chunked.status == 413)
            let answer4 = try PageClient.ask(address, "nonsense\r\n\r\n")
            #expect(answer4.status == 400)
            #expect(asked().isEmpty)
            // The longest that is allowed.
            let fits = "action=mute&" + String(repeating: "a", count: 4 * 1024 - 12)
            let answer5 = try PageClient.post(address, path, fits)
            #expect(answer5.status == 200 && asked() == ["mute \(FakeHandler.token)"])
        }
    }

    @Test func `a client that is slow is cut off, and nobody else waits for it`() async throws {
        var limits = PageLimits()
        limits.requestTime = .milliseconds(200)
        limits.headerTime = .milliseconds(200)
        try await serve(limits: limits) { address in
            let silent = try PageClient(address)
            let slow = try PageClient(address)
            slow.write("POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nact")
            let answer6 = try PageClient.get(address, path)
            #expect(answer6.status == 200)
            #expect(RawAnswer(slow.readAll())?.status == 408)
            #expect(silent.readAll().isEmpty)
            #expect(asked() == ["look \(FakeHandler.token)"])
        }
    }

    @Test func `one connection too many is told so, and none once another has ended`() async throws {
        var limits = PageLimits()
        limits.connectionCountMax = 2
        handler.state.withLock { $0.keeps = true }
        try await serve(limits: limits) { address in
            let waiting = try (0..<2).map { _ in try PageClient(address) }
            for client in waiting { client.write("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n") }
            while asked().count < 2 { await Task.yield() }
            let refused = RawAnswer(try PageClient(address).readAll())
            #expect(refused?.status == 503 && refused?.headers["retry-after"] == "30")
            let kept = handler.state.withLock { state in
                state.keeps = false
                return state.kept
            }
            for reply in kept { reply() }
            for client in waiting { #expect(RawAnswer(client.readAll())?.status == 404) }
        }
    }

    @Test(arguments: ["", "GET /u/", "POST /u/x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nact"])
    func `clients that only hold connections keep no other client out`(said: String) async throws {
        var limits = PageLimits()
        // More than these would overflow the listener's own queue, and wait a second for another try.
        limits.connectionCountMax = 64
        try await serve(limits: limits) { address in
            let holding = try (0..<80).map { _ in
                let client = try PageClient(address)
                client.write(said)
                return client
            }
            let page = try PageClient.get(address, path)
            #expect(page.status == 200)
            // 16 of them and the page's own made the 17 oldest end; they are told nothing.
            for client in holding[..<17] { #expect(client.readAll().isEmpty) }
            let muted = try PageClient.post(address, path, "action=mute")
            #expect(muted.status == 303)
        }
    }

    @Test func `a rate is a bucket that fills with time`() {
        let now = Mutex(NIODeadline.uptimeNanoseconds(1_000_000_000))
        let rate = PageRate(perSecond: 10, burst: 3) { now.withLock { $0 } }
        #expect((0..<5).map { _ in rate.take() } == [true, true, true, false, false])
        now.withLock { $0 = $0 + .milliseconds(99) }
        #expect(!rate.take())
        now.withLock { $0 = $0 + .milliseconds(1) }
        #expect(rate.take() && !rate.take())
        now.withLock { $0 = $0 + .hours(24 * 400) }
        #expect((0..<4).map { _ in rate.take() } == [true, true, true, false])
        // A clock that steps back gives nothing.
        now.withLock { $0 = .uptimeNanoseconds(5) }
        #expect(!rate.take())
    }

    @Test func `forged links and one link over and over leave the bound of the others' links alone`() {
        let now = Mutex(NIODeadline.uptimeNanoseconds(1_000_000_000))
        var limits = PageLimits()
        (limits.requestsPerSecond, limits.requestBurst, limits.requestsPerSecondOfLink) = (10, 4, 2)
        let rates = PageRates(limits) { now.withLock { $0 } }
        #expect((0..<6).map { _ in rates.take(for: .other) } == [true, true, true, true, false, false])
        // Two of a link are served as one, and what it asks more is as good as forged.
        #expect((0..<4).map { _ in rates.take(for: .link("a")) } == [true, true, false, false])
        #expect(rates.take(for: .link("b")) && rates.take(for: .link("c")))
        #expect(!rates.take(for: .link("d")), "all links together have a bound")
        #expect((0..<5).map { _ in rates.take(for: .styleSheet) } == [true, true, true, true, false])
        now.withLock { $0 = $0 + .seconds(1) }
        #expect(rates.take(for: .link("a")) && rates.take(for: .link("d")) && rates.take(for: .other))
    }

    @Test func `a genuine link is answered beside more forged ones than the rate`() async throws {
        var limits = PageLimits()
        (limits.requestsPerSecond, limits.requestBurst) = (0, 3)
        try await serve(limits: limits) { address in
            let forged = try (0..<5).map { _ in try PageClient.get(address, "/u/forged").status }
            #expect(forged == [404, 404, 404, 503, 503])
            let page = try PageClient.get(address, path)
            #expect(page.status == 200)
            #expect(try PageClient.get(address, "/u/style.css").status == 200)
            let muted = try PageClient.post(address, path, "action=mute")
            #expect(muted.status == 303)
        }
    }

    @Test func `more requests than the rate are a page and no question`() async throws {
        var limits = PageLimits()
        limits.requestsPerSecond = 0
        limits.requestBurst = 1
        try await serve(limits: limits) { address in
            let answer7 = try PageClient.get(address, path)
            #expect(answer7.status == 200)
            let answer8 = try PageClient.get(address, path)
            #expect(answer8.status == 503)
            #expect(asked().count == 1)
        }
    }

    // MARK: Where

    /// Runs with the path of a page socket in a directory of its own.
    private func withPath(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "pages-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder + "/pages.sock")
    }

    /// A socket of another program, bound to `path`; it listens with a queue of one connection if it is a stream.
    private func bindForeign(_ type: __socket_type, to path: String) throws -> CInt {
        let descriptor = socket(AF_UNIX, CInt(type.rawValue), 0)
        try #require(withAddress(of: path) { bind(descriptor, $0, $1) } == 0)
        if type == SOCK_STREAM { try #require(listen(descriptor, 0) == 0) }
        return descriptor
    }

    private func withAddress(of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        return withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    @Test func `a socket's path is served and removed, and what is not ours is left alone`() async throws {
        try await withPath { file in
            let address = PageAddress.unix(path: file)
            for _ in 0..<2 {
                try await serve(on: address) { address in
                    let answer9 = try PageClient.get(address, path)
                    #expect(answer9.status == 200)
                    // One that is in use is not taken over.
                    #expect(throws: EndpointError.lockHeld(path: file + ".lock")) { try PageSocket(address) }
                    let answer10 = try PageClient.get(address, path)
                    #expect(answer10.status == 200)
                }
                #expect(!FileManager.default.fileExists(atPath: file))
            }
            _ = FileManager.default.createFile(atPath: file, contents: Data("mine".utf8))
            #expect(throws: EndpointError.notASocket(path: file)) { try PageSocket(address) }
            #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
            let long = PageAddress.unix(path: file + String(repeating: "a", count: 200))
            #expect(throws: EndpointError.self) { try PageSocket(long) }
        }
    }

    @Test func `every user may connect who may search the directory, and nobody once the pages are given up`()
        async throws
    {
        try await withPath { file in
            let socket = try PageSocket(.unix(path: file))
            var status = stat()
            #expect(lstat(file, &status) == 0 && status.st_mode & 0o7777 == 0o666)
            socket.abandon()
            #expect(lstat(file, &status) != 0)
            #expect(throws: Never.self) { try PageSocket(.unix(path: file)) }
        }
    }

    @Test(arguments: [SOCK_DGRAM, SOCK_STREAM])
    func `a socket of another program is left alone, be it of another kind or its queue full`(
        type: __socket_type
    ) async throws {
        try await withPath { file in
            var descriptors = [try bindForeign(type, to: file)]
            defer { for descriptor in descriptors { close(descriptor) } }
            if type == SOCK_STREAM {
                var result: CInt = 0
                while result == 0, descriptors.count < 10 {
                    let client = socket(AF_UNIX, CInt(type.rawValue) | O_NONBLOCK, 0)
                    result = withAddress(of: file) { connect(client, $0, $1) }
                    descriptors.append(client)
                }
                try #require(result == -1 && errno == EAGAIN)
            }
            #expect(throws: EndpointError.socketInUse(path: file)) { try PageSocket(.unix(path: file)) }
            #expect(FileManager.default.fileExists(atPath: file))
        }
    }

    @Test func `pages that end leave the socket alone that has taken the place of theirs`() async throws {
        try await withPath { file in
            var foreign: CInt = -1
            try await serve(on: .unix(path: file)) { _ in
                unlink(file)
                foreign = try bindForeign(SOCK_STREAM, to: file)
            }
            #expect(FileManager.default.fileExists(atPath: file))
            close(foreign)
        }
    }

    @Test func `a port that another process listens on is refused with what to do`() throws {
        let first = try PageSocket(.loopback(port: 0))
        let error = #expect(throws: EndpointError.self) { try PageSocket(first.address) }
        #expect(error == .portRefused(address: "\(first.address)", errorNumber: EADDRINUSE))
        first.abandon()
        #expect(throws: Never.self) { try PageSocket(first.address) }
    }
}
