import Foundation
import Testing

extension EndToEnd {
    @Suite struct ReadmeTests {
        /// Commands in `sh` blocks, in order. What a block leaves running is ended with it.
        static func blocks() throws -> [String] {
            let text = try String(contentsOfFile: "\(Machine.repository)/README.md", encoding: .utf8)
            var blocks: [String] = []
            var open: [Substring]?
            for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
                if let lines = open {
                    if line == "```" {
                        blocks.append(lines.joined(separator: "\n"))
                        open = nil
                    } else {
                        open = lines + [line]
                    }
                } else if line == "```sh" {
                    open = []
                }
            }
            return blocks
        }

        @Test func `the README's commands run as written`() throws {
            let blocks = try Self.blocks()
            #expect(!blocks.isEmpty, "the README has no `sh` block")
            for block in blocks {
                let scratch = try Scratch()
                // As written, but for the binary under test and a folder of its own.
                let script = block.replacing(".build/debug/sendgate", with: Machine.sendgate)
                    .replacing("/tmp/gate", with: scratch.path("gate"))
                let finished = try Finished.run(
                    [
                        "/bin/bash", "-m", "-u", "-o", "pipefail", "-c",
                        "cd '\(Machine.repository)'\n\(script)",
                    ],
                    in: scratch, within: 120)
                #expect(finished.ending == .exit(0), "\(block)\n\(finished.output)\n\(finished.errors)")
                // What the README says of its last answer.
                #expect(finished.output.contains("urn:sendgate:reason:"), "\(finished.output)")
            }
        }

        @Test func `what a first gateway prints leads to a first notification when pasted`() throws {
            let scratch = try Scratch()
            let script = """
                '\(Machine.sendgate)' serve --dev '\(scratch.path("gate"))' --policies '\(Machine.policies)' 2>said &
                until grep -q 'security.new_login' said; do sleep 0.1; done
                until '\(Machine.sendgate)' status --socket '\(scratch.path("gate"))/gate.sock' >/dev/null; do :; done
                sed -n '/^Register somebody/,$p' said | grep '^  ' >pasted
                bash -eu -o pipefail pasted
                status=$?
                kill %1; wait
                exit $status
                """
            let finished = try Finished.run(
                ["/bin/bash", "-m", "-u", "-c", "cd '\(scratch.folder)'\n\(script)"], in: scratch, within: 120
            )
            #expect(finished.ending == .exit(0), "\(finished.output)\n\(finished.errors)")
            #expect(finished.output.contains("forward: "), "\(finished.output)")
        }

        @Test func `the demo tells its story and ends well`() throws {
            let scratch = try Scratch()
            let finished = try Finished.run(
                [
                    Machine.sendgate, "demo", "--policies", Machine.policies, "--provider",
                    "\(Machine.repository)/Tests/CourierProvidersTests/peers/push_service.py",
                    "--python", Machine.python,
                ],
                environment: ["TMPDIR": scratch.folder], in: scratch, within: 120)
            #expect(finished.ending == .exit(0), "\(finished.output.suffix(3000))\n\(finished.errors)")
            #expect(finished.output.contains("no_gdpr_consent"))
            #expect(finished.output.contains("sms_fallback_forbidden"))
            #expect(finished.output.contains("critical_not_permitted"))
            #expect(finished.output.contains("no rule is broken"))
            #expect(finished.output.contains("the token is taken out"))
        }
    }
}
