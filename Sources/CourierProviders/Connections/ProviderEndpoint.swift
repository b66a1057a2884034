/// Where a provider listens.
package struct ProviderEndpoint: Sendable, Hashable, CustomStringConvertible {
    package var host: String
    package var port: Int
    /// Whether it is reached without TLS, which only this machine's own loopback may be.
    package let isPlain: Bool

    package init(host: String, port: Int = 443) {
        self.host = host
        self.port = port
        isPlain = false
    }

    /// `https://host[:port]`, or `http://` to loopback; no path.
    /// - Throws: ``UnusableEndpoint`` that says what is wrong with the text.
    package init(url: String) throws(UnusableEndpoint) {
        func unusable(_ why: String) -> UnusableEndpoint { UnusableEndpoint(url: url, why: why) }
        let (rest, isPlain): (Substring, Bool) =
            if url.hasPrefix("https://") {
                (url.dropFirst(8), false)
            } else if url.hasPrefix("http://") {
                (url.dropFirst(7), true)
            } else {
                throw unusable("it has to begin with https://")
            }
        guard let match = rest.wholeMatch(of: /(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+)(?::([0-9]{1,5}))?\/?/)
        else {
            throw unusable("it has to be a host and perhaps a port, without a path")
        }
        host = String(match.1.drop { $0 == "[" }.prefix { $0 != "]" })
        let port = match.2.map { Int($0) ?? 0 } ?? (isPlain ? 80 : 443)
        guard (1...65_535).contains(port) else { throw unusable("a port is between 1 and 65535") }
        self.port = port
        self.isPlain = isPlain
        if isPlain, !isLoopback {
            throw unusable("without TLS only 127.0.0.1, ::1 and localhost are reached")
        }
    }

    private var isLoopback: Bool { ["localhost", "::1"].contains(host) || host.isIPv4Loopback }

    /// An address has no name that TLS could send to the server (RFC 6066, section 3).
    var isAddress: Bool { host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." } }

    /// `Host` and `:authority` (RFC 9110, section 7.2).
    var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isPlain ? 80 : 443) ? name : "\(name):\(port)"
    }

    package var description: String { "\(host):\(port)" }
}

extension String {
    /// 127.0.0.0/8 (RFC 6890).
    fileprivate var isIPv4Loopback: Bool {
        let parts = split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// An address of a provider that cannot be used.
package struct UnusableEndpoint: Error, Hashable, CustomStringConvertible {
    package var url: String
    package var why: String

    package var description: String { "the address `\(url)` cannot be used: \(why)" }
}
