/// One way in which a request is not what it should be, and what would be right.
package struct Violation: Hashable, Sendable, CustomStringConvertible {
    /// The part of a request that is wrong.
    package enum Place: Hashable, Sendable {
        /// A member of the body (RFC 6901); the root is the body itself.
        case body(JSONPointer)
        /// A part of the path, by its name in the route, e.g. `user`.
        case path(String)
        /// A query parameter, by its name.
        case query(String)
    }

    package var place: Place
    /// Starts lower-case and has no full stop, e.g. "expected an integer from 1 to 2419200".
    package var message: String

    package init(_ place: Place, _ message: String) {
        self.place = place
        self.message = message
    }

    /// Where in the body; `nil` for a part of the target.
    package var pointer: JSONPointer? {
        guard case .body(let pointer) = place else { return nil }
        return pointer
    }

    /// The same, seen from the container that holds the value.
    package func inside(_ token: JSONPointer) -> Violation {
        guard case .body(let pointer) = place else { return self }
        return Violation(.body(token.appending(pointer)), message)
    }

    package var description: String {
        switch place {
        case .body(let pointer): "\(message) at `\(pointer.shortened())`"
        case .path(let name): "\(message) in the path at `{\(name)}`"
        case .query(let name): "\(message) in the query at `\(Self.quotable(name))`"
        }
    }

    /// Bytes of a key that a message repeats.
    static let quotedByteCountMax = 64

    /// At most ``quotedByteCountMax`` bytes of a text that was sent.
    package static func quotable(_ text: String) -> String {
        guard text.utf8.count > quotedByteCountMax else { return text }
        var kept = ""
        for scalar in text.unicodeScalars {
            if kept.utf8.count + UTF8.width(scalar) > quotedByteCountMax { break }
            kept.unicodeScalars.append(scalar)
        }
        return kept + "…"
    }
}
