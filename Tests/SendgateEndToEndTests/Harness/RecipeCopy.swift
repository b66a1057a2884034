import Foundation

/// A recipe of the handbook as edits, and a copy of the sources and of the bundle to which they are made.
///
/// Each block of code in a recipe is an edit. The prose before it ends with the file and the name that the edit comes after:
/// "`Sources/X/Y.swift`, after `one`:", or `before`, or `in place of`; without a name the block is a file of its own. The name means
/// the line that declares it, or else the only line that has it; "after `one` in `f`" looks in the declaration `f` alone.
struct Recipe {
    struct Edit {
        enum Place: String {
            case after
            case before
            case replaced = "in place of"
        }
        var path: String
        var anchor: String?
        /// The declaration in which the anchor stands.
        var scope: String?
        var place: Place
        var text: String

        /// The module of a source file.
        var module: String? {
            let parts = path.split(separator: "/")
            return parts[0] == "Sources" && path.hasSuffix(".swift") ? String(parts[1]) : nil
        }
    }

    let name: String
    let edits: [Edit]

    static func all() throws -> [Recipe] {
        let path = "\(Machine.repository)/Sources/sendgate/Sendgate.docc/Contributing.md"
        let page = try String(contentsOfFile: path, encoding: .utf8)
        guard let section = page.components(separatedBy: "\n## ").first(where: { $0.hasPrefix("Recipes\n") })
        else { throw HarnessError("Contributing.md has no recipes") }
        return try section.components(separatedBy: "\n### ").dropFirst().map(Recipe.init)
    }

    private init(_ section: String) throws {
        var lines = section.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
        name = lines.removeFirst()
        var edits: [Edit] = []
        var prose = ""
        while let line = lines.popFirst() {
            guard line.hasPrefix("   ```") else {
                prose = line.isEmpty ? "" : prose + " " + line.trimmingCharacters(in: .whitespaces)
                continue
            }
            guard let end = lines.firstIndex(of: "   ```"),
                let place = prose.firstMatch(
                    of: /`([A-Za-z][^`]*)`(?:, (after|before|in place of) `([^`]+)`(?: in `([^`]+)`)?)?:$/)
            else { throw HarnessError("\(name): a block without an end, or no file before it: \(prose)") }
            let text = lines[..<end].map { String($0.dropFirst(3)) + "\n" }.joined()
            edits.append(
                Edit(
                    path: String(place.output.1), anchor: place.output.3.map(String.init),
                    scope: place.output.4.map(String.init),
                    place: place.output.2.flatMap { Edit.Place(rawValue: String($0)) } ?? .after, text: text))
            lines = lines[(end + 1)...]
            prose = ""
        }
        self.edits = edits
    }
}

/// `Sources` and `Policies`, copied to a test's own folder, and the compiler as the build calls it.
struct RecipeCopy {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        for folder in ["Sources", "Policies"] {
            try FileManager.default.copyItem(
                atPath: "\(Machine.repository)/\(folder)", toPath: scratch.path(folder))
        }
        try FileManager.default.createDirectory(
            atPath: scratch.path("Modules"), withIntermediateDirectories: false)
    }

    func apply(_ edit: Recipe.Edit) throws {
        let path = scratch.path(edit.path)
        guard let anchor = edit.anchor else {
            guard !FileManager.default.fileExists(atPath: path) else {
                throw HarnessError("`\(edit.path)` is there already")
            }
            return try Data(edit.text.utf8).write(to: URL(fileURLWithPath: path))
        }
        var lines = try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n")
        let found = try Self.line(of: anchor, in: edit.scope, of: lines, path: edit.path)
        let margin = lines[found].prefix { $0 == " " }
        let new = edit.text.split(separator: "\n").map { "\(margin)\($0)" }
        var start = edit.place == .after ? found + 1 : found
        if edit.place == .before {
            // What documents a declaration stays with it.
            while start > 0, lines[start - 1].starts(with: /\s*(?:\/\/\/|@)/) { start -= 1 }
        }
        lines.replaceSubrange(start..<(edit.place == .replaced ? start + 1 : start), with: new)
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
    }

    /// The line that declares a name, or else the only line that has it; in the lines of a declaration, if one is given.
    static func line(
        of name: String, in scope: String?, of lines: [String], path: String
    ) throws -> Int {
        var range = lines.indices
        if let scope {
            let head = try line(of: scope, in: nil, of: lines, path: path)
            let margin = lines[head].prefix { $0 == " " }
            let end = lines[(head + 1)...].firstIndex {
                $0.hasPrefix(margin) && "}])".contains($0.dropFirst(margin.count).first ?? " ")
                    && !$0.hasSuffix("{")
            }
            guard let end else { throw HarnessError("`\(scope)` of `\(path)` has no body") }
            range = head + 1..<end
        }
        let words = NSRegularExpression.escapedPattern(for: name)
        let declaring = try Regex(
            "^ *(?:@\\w+(?:\\([^)]*\\))? |(?:package|private|fileprivate|static|mutating|final) )*"
                + "(?:let|var|func|case|struct|enum|class|protocol|extension) \(words)(?!\\w)")
        let isWord = (name.first?.isLetter == true, name.last?.isLetter == true)
        let having = try Regex(
            "^(?! *//)\(isWord.0 ? "(?:.*\\W)?" : ".*")\(words)\(isWord.1 ? "(?!\\w)" : "")")
        for pattern in [declaring, having] {
            let found = range.filter { lines[$0].firstMatch(of: pattern) != nil }
            if found.count == 1 { return found[0] }
            guard found.isEmpty else {
                throw HarnessError("\(found.count) lines of `\(path)` have `\(name)`")
            }
        }
        throw HarnessError("`\(name)` is not in `\(scope ?? path)`")
    }

    // MARK: The compiler

    /// The modules of Package.swift, from the lowest to the highest.
    private static let modules: [String] = {
        let manifest =
            try! String(contentsOfFile: "\(Machine.repository)/Package.swift", encoding: .utf8)
        return manifest.matches(of: /(?:module|executableTarget)\(\s*(?:name: )?"(\w+)"/).map { String($0.1) }
    }()

    /// What the build gives the compiler for a module, without what says where results go.
    private static func arguments(of module: String) throws -> [String] {
        let manifest = try String(contentsOfFile: "\(Machine.repository)/.build/debug.yaml", encoding: .utf8)
        let line = manifest.split(separator: "\n").first {
            $0.contains("args: [") && $0.contains("\"-module-name\",\"\(module)\"")
                && $0.contains("\"-emit-module\"")
        }
        guard let line, let start = line.firstIndex(of: "[") else {
            throw HarnessError("the build has no module \(module)")
        }
        let all = try JSONDecoder().decode([String].self, from: Data(line[start...].utf8))
        let single: Set<String> = ["-parse-as-library", "-enable-testing", "-warnings-as-errors"]
        let paired: Set<String> = [
            "-module-name", "-I", "-target", "-swift-version", "-enable-upcoming-feature", "-package-name",
            "-module-cache-path", "-Xcc",
        ]
        var kept = [all[0]]
        for (index, argument) in all.enumerated() {
            if single.contains(argument) || argument.hasPrefix("-D") {
                kept.append(argument)
            } else if paired.contains(argument), index + 1 < all.count, index == 0 || all[index - 1] != "-Xcc"
            {
                kept += [argument, all[index + 1]]
            }
        }
        return kept
    }

    /// Type-checks what some edits can break: the edited files, and every file that names, as an enum's case, the one after
    /// which an edit puts another one, because an exhaustive `switch` names them all.
    ///
    /// The changed modules are laid over the built ones first, so that those above see the change.
    ///
    /// - Returns: The compiler's errors.
    func check(_ edits: [Recipe.Edit]) throws -> [String] {
        let siblings = edits.compactMap { $0.anchor?.firstMatch(of: /^case \.?(\w+)/)?.output.1 }
        let names =
            try siblings.isEmpty ? nil : Regex("[^\\w)\\]>]\\.(?:\(siblings.joined(separator: "|")))\\b")
        let edited = Set(edits.map { scratch.path($0.path) })
        let plan = try Self.modules.compactMap {
            module -> (module: String, checked: [String], others: [String])? in
            let folder = scratch.path("Sources/\(module)")
            let files = try FileTree.files(in: folder).filter { $0.hasSuffix(".swift") }.map {
                "\(folder)/\($0)"
            }
            let checked = try files.filter { file in
                if edited.contains(file) { return true }
                guard let names else { return false }
                return try String(contentsOfFile: file, encoding: .utf8).contains(names)
            }
            return checked.isEmpty ? nil : (module, checked, files.filter { !checked.contains($0) })
        }
        var errors: [String] = []
        for (index, (module, checked, others)) in plan.enumerated() {
            let arguments = try Self.arguments(of: module)
            let flags = ["-I", scratch.path("Modules")] + arguments.dropFirst()
            if index + 1 < plan.count, !edited.isDisjoint(with: checked) {
                // Without the bodies, of which those that an edit can break are checked below.
                errors += try run(
                    arguments.prefix(1) + ["-frontend"],
                    ["-emit-module", "-experimental-skip-non-inlinable-function-bodies-without-types"]
                        + ["-o", scratch.path("Modules/\(module).swiftmodule")] + flags + checked + others)
            }
            errors += try run(
                arguments.prefix(1) + ["-frontend"],
                ["-typecheck"] + flags + checked.flatMap { ["-primary-file", $0] } + others)
        }
        return errors
    }

    /// - Parameter arguments: In a file, because those of a large module are longer than what a process may be given.
    private func run(_ compiler: [String], _ arguments: [String]) throws -> [String] {
        let file = try scratch.write("arguments", arguments.map { "\"\($0)\"\n" }.joined())
        let finished = try Finished.run(
            compiler + ["@\(file)"], environment: Machine.commands, in: scratch, within: 180)
        let errors = finished.errors.split(separator: "\n").map(String.init).filter {
            $0.contains(": error: ")
        }
        return finished.ending != .exit(0) && errors.isEmpty ? [finished.errors] : errors
    }
}
