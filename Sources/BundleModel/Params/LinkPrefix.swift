import GateVocabulary

/// A place that links may lead to, with everything below it: `drop://send` covers `drop://send/7?step=2`.
///
/// Link and place are read (``LinkReading``) and compared part by part: the same scheme, the same host, the segments of
/// the place before any others. What a link adds names no host: `drop://open?next=evil.example` would make the app its
/// messenger.
package struct LinkPrefix: Hashable, Sendable {
    /// Without query and fragment.
    package let text: String
    private let place: LinkReading

    /// Bytes of a link, as the wire has it.
    package static let byteCountMax = SendRequest.deepLinkByteCountMax

    /// A place in an app: a scheme of its own, and a path that may be empty.
    package init?(inApp text: String) {
        guard let place = LinkReading(text), !LinkSchemes.followed.contains(place.scheme) else { return nil }
        self.init(place, text)
    }

    /// A place on the web: `https` and a whole host in lower case.
    package init?(onWeb text: String) {
        guard let place = LinkReading(text), place.scheme == "https",
            place.host.utf8.allSatisfy({ $0 < 0x41 || $0 > 0x5A }),
            case .name = HostReading(place.host.unicodeScalars),
            !place.host.hasPrefix("."), !place.host.hasSuffix("."), !place.host.contains("_"),
            !place.host.contains("~")
        else { return nil }
        self.init(place, text)
    }

    private init(_ place: LinkReading, _ text: String) {
        self.text = String(text.prefix { $0 != "?" && $0 != "#" })
        self.place = place
    }

    /// The same place of an app as a link on the web leads to it (Apple's universal links, Android's app links): with
    /// `https://app.getdrop.no` for `drop`, `drop://send` is `https://app.getdrop.no/send`.
    ///
    /// - Parameter appLinks: Where on the web the places of an app lie, by the app's scheme.
    /// - Returns: `nil` where the scheme has no such place.
    func onWeb(by appLinks: [String: LinkPrefix]) -> LinkPrefix? {
        guard let root = appLinks[place.scheme] else { return nil }
        let steps = ([root.text] + [place.host] + place.segments).filter { !$0.isEmpty }
        return LinkPrefix(onWeb: steps.joined(separator: "/"))
    }

    /// Whether a link leads here or below. A name that only begins the same, `drop://sender`, does not.
    package func covers(_ link: String) -> Bool {
        guard let link = LinkReading(link), link.scheme == place.scheme else { return false }
        if place.host.isEmpty {
            // A scheme alone: every screen of the app, and no host.
            guard link.host.isEmpty || HostReading(link.host.unicodeScalars) == .none else { return false }
        } else {
            guard link.host == place.host else { return false }
        }
        // `drop://send/` has an empty last segment, which any other may stand for.
        let segments = place.segments.last?.isEmpty == true ? place.segments.dropLast() : place.segments[...]
        guard link.segments.starts(with: segments),
            segments.count == place.segments.count || link.segments.count > segments.count
        else { return false }
        return link.segments.dropFirst(segments.count).allSatisfy { segment in
            // `terms.pdf` is a file.
            switch HostReading(segment.unicodeScalars) {
            case .none, .number, .name(isCertain: false): true
            case .address, .name(isCertain: true): false
            }
        }
            && link.values.allSatisfy { value in
                switch HostReading(value.unicodeScalars) {
                case .none, .number: true
                case .address, .name: false
                }
            }
    }
}

/// The parts of a link (RFC 3986 section 3) that has one spelling only.
///
/// Letters, digits and `-._~` in every part, `/` in the path, `&=` in the query. That leaves out what makes a link look
/// like it led elsewhere: `%` (a second spelling, and control characters), `@` (section 3.2.1, user information), `\`
/// (browsers read it as `/`), `:` (a port, or a link inside a link), `/` in query and fragment (a path inside a link),
/// empty segments and dot segments (section 5.2.4).
struct LinkReading: Hashable, Sendable {
    var scheme: String
    /// Empty for the bare scheme.
    var host: String
    /// The last is empty for a path that ends in `/`.
    var segments: [String]
    /// Names and values of the query, and the fragment.
    var values: [String]

    init?(_ text: String) {
        guard text.utf8.count <= LinkPrefix.byteCountMax, text.utf8.allSatisfy({ $0 < 0x80 }),
            let mark = text.firstRange(of: "://")
        else { return nil }
        scheme = String(text[..<mark.lowerBound])
        guard scheme.first?.isLetter == true,
            scheme.allSatisfy({ $0.isLowercase || $0.isNumber || "+-.".contains($0) })
        else { return nil }
        let beforeFragment = text[mark.upperBound...].prefix { $0 != "#" }
        let hierarchy = beforeFragment.prefix { $0 != "?" }
        let path = hierarchy.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        host = path[0]
        segments = Array(path.dropFirst())
        guard !host.isEmpty || segments.isEmpty, segments.dropLast().allSatisfy({ !$0.isEmpty }) else {
            return nil
        }
        let query = beforeFragment[hierarchy.endIndex...].dropFirst()
        let fragment = text[beforeFragment.endIndex...].dropFirst()
        values = query.split { "&=".contains($0) }.map(String.init) + [String(fragment)]
        guard (path + values).allSatisfy({ Self.isPlain($0) && !$0.contains("..") && $0 != "." }) else {
            return nil
        }
    }

    /// RFC 3986 section 2.3, unreserved characters.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy(PercentEncoding.isUnreserved)
    }
}
