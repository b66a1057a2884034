package import CanonicalJSON

/// One value that two bundles have otherwise: a scalar that changed, or a scalar, list or mapping that only one has.
package struct PolicyEdit: Hashable, Sendable {
    package var file: String
    /// From the page's root; empty for a page as a whole, such as a notice.
    package var path: [String]
    /// `nil` where only the new bundle has it.
    package var before: JSONValue?
    /// `nil` where only the old bundle has it.
    package var after: JSONValue?

    /// Every edit between two bundles' pages, by file and then in the order of the pages' members.
    package static func all(
        from old: [String: PolicyNode], to new: [String: PolicyNode]
    ) -> [PolicyEdit] {
        Set(old.keys).union(new.keys).sorted().flatMap { file in
            between(old[file]?.json, new[file]?.json, in: file)
        }
    }

    /// The edits of one page.
    package static func between(_ old: JSONValue?, _ new: JSONValue?, in file: String) -> [PolicyEdit] {
        var edits: [PolicyEdit] = []
        compare(old, new, file, [], &edits)
        return edits
    }

    private static func compare(
        _ old: JSONValue?, _ new: JSONValue?, _ file: String, _ path: [String], _ edits: inout [PolicyEdit]
    ) {
        switch (old, new) {
        case (.object(let before)?, .object(let after)?):
            for (key, value) in before {
                let other = after[key]
                if other != value { compare(value, other, file, path + [key], &edits) }
            }
            for (key, value) in after where before[key] == nil {
                compare(nil, value, file, path + [key], &edits)
            }
        case (.array(let before)?, .array(let after)?):
            // What stands alike at both ends is no edit, so that one line more is one edit and not all that follow.
            var start = 0
            while start < min(before.count, after.count), before[start] == after[start] { start += 1 }
            var end = 0
            while end < min(before.count, after.count) - start,
                before[before.count - 1 - end] == after[after.count - 1 - end]
            {
                end += 1
            }
            let left = before[start..<(before.count - end)]
            let right = after[start..<(after.count - end)]
            for index in start..<max(left.endIndex, right.endIndex) {
                // A neighbour that stands alike between two edits is none itself.
                // Spelled out: a bare `nil` would be the value `null`.
                let before: JSONValue? = left.indices.contains(index) ? .some(left[index]) : .none
                let after: JSONValue? = right.indices.contains(index) ? .some(right[index]) : .none
                compare(before, after, file, path + [String(index)], &edits)
            }
        case (let before, let after) where before == after: break
        default: edits.append(PolicyEdit(file: file, path: path, before: old, after: new))
        }
    }

    /// "types/promo.offer.yaml: ttl.hours was 12, now 11".
    package var sentence: String {
        let place = path.isEmpty ? file : "\(file): \(path.joined(separator: "."))"
        switch (before, after) {
        case (let before?, let after?): return "\(place) was \(Self.words(before)), now \(Self.words(after))"
        case (nil, let after?): return "\(place) is new: \(Self.words(after))"
        case (let before?, nil): return "\(place) is gone: \(Self.words(before))"
        case (nil, nil): preconditionFailure("an edit of nothing in \(file)")
        }
    }

    /// Characters of a value in a sentence; the JSON form has all of it.
    private static let characterCountMax = 160

    private static func words(_ value: JSONValue) -> String {
        let text = String(decoding: CanonicalJSON.write(value), as: UTF8.self)
        return text.count <= characterCountMax ? text : "\(text.prefix(characterCountMax))…"
    }
}

extension PolicyBundle {
    /// Notices that have other words than were archived under their id, version and language: who said yes was shown
    /// those, so an edit in place makes their consent one to something they never read.
    ///
    /// - Parameter archived: SHA-256 of what was archived under a key; `nil` for a key that is new.
    package func editedNotices(
        archived: (Notice.Key) throws -> String?
    ) rethrows -> [PolicyDiagnostic] {
        try notices.values.sorted { $0.key.path < $1.key.path }.compactMap { notice in
            guard let before = try archived(notice.key), before != notice.sha256 else { return nil }
            return PolicyDiagnostic(
                file: notice.key.path, at: location(notice.key.path, []),
                "has other words than were in force under this id and version (SHA-256 \(before))",
                hint: "restore the text, and put the new words into a file of the next version")
        }
    }
}
