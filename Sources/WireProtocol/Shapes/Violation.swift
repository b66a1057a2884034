package import CanonicalJSON

/// One way in which a request is not what it should be, and what would be right.
package struct Violation: Hashable, Sendable, CustomStringConvertible {
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

    /// The same, seen from the container that holds the value.
    func inside(_ token: JSONPointer) -> Violation {
        guard case .body(let pointer) = place else { return self }
        return Violation(.body(token.appending(pointer)), message)
    }

    /// `{"pointer": …, "message": …}` for the body (as RFC 9457 section 3 shows it), `{"parameter": …,
    /// "in": "path" | "query", "message": …}` for the rest. A long pointer is cut: its keys are the caller's.
    package var json: JSONObject {
        switch place {
        case .body(let pointer): ["message": .string(message), "pointer": .string(pointer.shortened())]
        case .path(let name): ["in": "path", "message": .string(message), "parameter": .string(name)]
        case .query(let name):
            [
                "in": "query", "message": .string(message),
                "parameter": .string(Self.quotable(name)),
            ]
        }
    }

    package var description: String {
        switch place {
        case .body(let pointer): "\(message) at `\(pointer.shortened())`"
        case .path(let name): "\(message) in the path at `{\(name)}`"
        case .query(let name): "\(message) in the query at `\(Self.quotable(name))`"
        }
    }

    /// At most ``WireLimits/quotedByteCountMax`` bytes of a text somebody sent.
    static func quotable(_ text: String) -> String {
        guard text.utf8.count > WireLimits.quotedByteCountMax else { return text }
        var kept = ""
        for scalar in text.unicodeScalars {
            if kept.utf8.count + UTF8.width(scalar) > WireLimits.quotedByteCountMax { break }
            kept.unicodeScalars.append(scalar)
        }
        return kept + "…"
    }
}

extension Violation {
    package static let shape = Shape.answer(
        "Violation",
        "One thing that is not what it should be: a member of the body, or a part of the target.",
        [
            .optional("pointer", .anyText, "The member of the body (RFC 6901)."),
            .optional("parameter", .anyText, "The part of the path or the query parameter."),
            .optional("in", .choice(["path", "query"]), "Where the parameter stands."),
            .required("message", .anyText, "What would be right."),
        ])
}
