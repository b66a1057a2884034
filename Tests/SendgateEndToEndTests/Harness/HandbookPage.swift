import Foundation

/// A page of the handbook, as the commands, programs and outputs in it.
///
/// A block `sh` is run, and a block `text` right after it is what it prints. A block in any other language is a program, saved
/// under the name that the line before it ends with, in backticks and with a colon.
struct HandbookPage {
    struct Block {
        /// The fence's info string.
        var language: String
        var text: String
        /// The last line of prose before it.
        var line: String

        /// Under which name a program is saved.
        var fileName: String? { line.firstMatch(of: /`([A-Za-z0-9_.]+)`:$/).map { String($0.1) } }
    }

    let name: String
    let blocks: [Block]

    init(_ name: String) throws {
        self.name = name
        let path = "\(Machine.repository)/Sources/sendgate/Sendgate.docc/\(name).md"
        var blocks: [Block] = []
        var open: (language: String, lines: [Substring])?
        var last = ""
        for line in try String(contentsOfFile: path, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false)
        {
            if let (language, lines) = open {
                if line == "```" {
                    blocks.append(
                        Block(language: language, text: lines.joined(separator: "\n") + "\n", line: last))
                    open = nil
                } else {
                    open = (language, lines + [line])
                }
            } else if line.hasPrefix("```") {
                open = (String(line.dropFirst(3)), [])
            } else if !line.isEmpty {
                last = String(line)
            }
        }
        guard open == nil else { throw HarnessError("a block of \(name).md does not end") }
        self.blocks = blocks
    }

    /// The one program that is saved as `fileName`.
    func program(_ fileName: String) throws -> String {
        let found = blocks.filter { $0.fileName == fileName && $0.language != "sh" && $0.language != "text" }
        guard found.count == 1 else {
            throw HarnessError("\(found.count) blocks of \(name).md are \(fileName)")
        }
        return found[0].text
    }

    /// One command with what it is to print; `nil` when the page does not say.
    struct Step {
        var command: String
        var expected: String?
    }

    /// Runs every command of the page in one shell, in its order, and saves each program where it stands.
    ///
    /// - Parameter replacements: What stands on the page for a thing of the reader's own, and what this machine has in its place.
    /// - Returns: What each command was to print, and printed.
    func run(
        in scratch: Scratch, replacing replacements: [(String, String)] = []
    ) throws -> (steps: [Step], printed: [String], finished: Finished) {
        let mark = "=== the end of a block ==="
        var script = "cd '\(scratch.folder)'\nln -s '\(Machine.policies)' Policies\n"
        var steps: [Step] = []
        for (index, block) in blocks.enumerated() {
            switch block.language {
            case "text": continue
            case "sh":
                let next = index + 1 < blocks.count && blocks[index + 1].language == "text"
                steps.append(
                    Step(command: block.text, expected: next ? blocks[index + 1].text : nil))
                script += "\(block.text)echo '\(mark)'\n"
            // The build compiles this one.
            case "swift": continue
            default:
                guard let file = block.fileName else {
                    throw HarnessError(
                        "the line before a \(block.language) program of \(name).md names no file")
                }
                script += "cat >'\(file)' <<'THE END OF THE PROGRAM'\n\(block.text)THE END OF THE PROGRAM\n"
            }
        }
        for (text, replacement) in replacements { script = script.replacing(text, with: replacement) }
        let finished = try Finished.run(
            [
                "/bin/bash", "-m", "-u", "-o", "pipefail", "-c",
                script.replacing("/tmp/gate", with: scratch.path("gate")),
            ],
            environment: Machine.commands, in: scratch, within: 300)
        let printed = finished.output.components(separatedBy: "\(mark)\n")
        return (steps, printed, finished)
    }
}
