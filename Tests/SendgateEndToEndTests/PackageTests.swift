import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    /// The Debian packages: built, installed into a root of their own, set up by the handbook's page, upgraded, removed.
    @Suite struct PackageTests {
        static let folder = "\(Machine.repository)/Sources/DebianPackages"

        /// Unit files by their names.
        private static func units(_ suffix: String) throws -> [String: String] {
            var found: [String: String] = [:]
            for name in try FileTree.files(in: folder) where name.hasSuffix(suffix) {
                let key = (name as NSString).lastPathComponent
                found[key] = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
            }
            return found
        }

        @Test
        func `no service has an exposure above 1,5, and the gate has no network and no namespace of users`()
            throws
        {
            let scratch = try Scratch()
            let services = try Self.units(".service")
            #expect(services.count == 3)
            for (name, text) in services {
                let path = try scratch.write(name, text)
                let judged = try Finished.run(
                    [
                        "/usr/bin/systemd-analyze", "security", "--offline=true", "--threshold=15",
                        "--no-pager",
                        path,
                    ], in: scratch, within: 60)
                #expect(judged.ending == .exit(0), "\(name): \(judged.output)")
                let lines = text.split(separator: "\n")
                #expect(!lines.contains { $0.hasPrefix("PrivateUsers=") }, "\(name): peers would read 65534")
                #expect(lines.contains("NoNewPrivileges=yes") && lines.contains("CapabilityBoundingSet="))
                guard name != "sendgate-courier.service" else { continue }
                #expect(
                    lines.contains("RestrictAddressFamilies=AF_UNIX") && lines.contains("PrivateNetwork=yes"))
            }
        }

        /// The judge itself: without one wall it refuses.
        @Test func `a service without its system call filter is above`() throws {
            let scratch = try Scratch()
            let courier = try #require(try Self.units(".service")["sendgate-courier.service"])
            let open = courier.split(separator: "\n").filter { !$0.hasPrefix("SystemCallFilter=") }
            let path = try scratch.write("sendgate-courier.service", open.joined(separator: "\n"))
            let judged = try Finished.run(
                [
                    "/usr/bin/systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager",
                    path,
                ],
                in: scratch, within: 60)
            #expect(judged.ending != .exit(0))
        }

        @Test func `systemd reads every unit without a remark, and each directive stands under a comment`()
            throws
        {
            let scratch = try Scratch()
            var paths: [String] = []
            for (name, text) in try Self.units(".service").merging(
                Self.units(".socket"), uniquingKeysWith: { $1 })
            {
                // The program and its page are not installed here.
                var text = text.replacing("/usr/bin/sendgate-courier ", with: "/usr/bin/true ")
                    .replacing("/usr/bin/sendgate ", with: "/usr/bin/true ")
                text = text.split(separator: "\n", omittingEmptySubsequences: false)
                    .filter { !$0.hasPrefix("Documentation=") }.joined(separator: "\n")
                paths.append(try scratch.write(name, text, mode: 0o644))
                #expect(text.contains("#"), "\(name) says nothing of its lines")
            }
            #expect(paths.count == 8)
            let verified = try Finished.run(
                ["/usr/bin/systemd-analyze", "verify", "--man=no"] + paths, in: scratch, within: 60)
            #expect(verified.ending == .exit(0) && verified.errors.isEmpty, "\(verified.errors)")
        }

        private struct Calls: Decodable {
            var used: Int
            var refused: [String]
        }

        /// A filter that is too narrow would be found in production, as an error nobody can place.
        @Test func `a gate and a courier at work make no system call that their units refuse`() throws {
            let scratch = try Scratch()
            let (gateTrace, courierTrace) = (scratch.path("gate.trace"), scratch.path("courier.trace"))
            func traced(_ path: String) -> [String] { ["/usr/bin/strace", "-f", "-qq", "-o", path] }
            let courier = try ChildProcess(
                traced(courierTrace) + [
                    Machine.courier, "serve", "--dev", scratch.path("courier"), "--json",
                ],
                errorPath: scratch.path("courier.stderr"))
            _ = try courier.readLine(within: 60)
            let gate = GateProcess(
                in: scratch, ["--hop", "unix:\(scratch.path("courier/courier.sock"))"])
            try gate.start(wrapper: traced(gateTrace))
            try gate.registerSomebody()
            #expect(try gate.stillAnswers("traced"))
            gate.signal(SIGHUP)
            #expect(try gate.stop() == .exit(0))
            courier.signal(SIGTERM)
            #expect(try courier.waitForEnd(within: 60) == .exit(0))
            for (name, trace) in [("sendgate", gateTrace), ("sendgate-courier", courierTrace)] {
                let judged = try Finished.run(
                    [
                        Machine.python, Machine.peer("unit_calls.py"),
                        "\(Self.folder)/\(name)/\(name).service",
                        trace,
                    ], in: scratch, within: 60)
                let calls = try JSONDecoder().decode(Calls.self, from: Data(judged.output.utf8))
                #expect(calls.used > 40 && calls.refused.isEmpty, "\(name): \(calls)")
            }
        }

        private struct Found: Decodable {
            struct Load: Decodable {
                var statuses: [String: Int]
                var failures: [String]
                var longestSeconds: Double
            }
            struct Upgrade: Decodable {
                var newProcess: Bool
                var said: String
            }
            struct Unproved: Decodable {
                var sameProcess: Bool
                var said: Bool
                var answers: String
            }
            struct Removed: Decodable {
                var program: Bool
                var socket: Bool
                var process: Bool
                var configuration: Bool
            }
            struct Fault: Decodable {
                var check: String
                var subject: String
                var fault: String
            }
            var foreignUser: [Bool]
            var installed: Bool
            var pageSeconds: Double
            var firstSend: String
            var faults: [Fault]
            var status: String
            var courierStatus: String
            var bundleFromAnywhere: Int
            var load: Load
            var upgrade: Upgrade
            var unproved: Unproved
            var removed: Removed
            var left: [String]
        }

        /// Packages of the programs that are built here.
        private static func build(_ programs: String, in scratch: Scratch) throws -> String {
            let out = scratch.path("debs-1")
            let built = try Finished.run(
                [
                    "/usr/bin/python3", "\(folder)/build_packages.py", "--programs", programs, "--out", out,
                    "--revision", "1", "--compression", "none",
                ], in: scratch, within: 300)
            guard built.ending == .exit(0) else { throw HarnessError("no packages: \(built.errors)") }
            return out
        }

        /// The same packages as another revision.
        private static func revised(_ folder: String, in scratch: Scratch) throws -> String {
            let out = scratch.path("debs-2")
            let script = """
                mkdir "$2"
                for package in "$1"/*.deb; do
                    dpkg-deb --raw-extract "$package" "$2/tree"
                    sed -i '/^Version: /s/-1$/-2/' "$2/tree/DEBIAN/control"
                    grep -q '^Version: .*-2$' "$2/tree/DEBIAN/control"
                    dpkg-deb --root-owner-group -Znone --build "$2/tree" "$2/$(basename "$package")"
                    rm -r "$2/tree"
                done
                """
            let made = try Finished.run(
                ["/bin/bash", "-euc", script, "-", folder, out], in: scratch, within: 120)
            guard made.ending == .exit(0) else { throw HarnessError("no second revision: \(made.errors)") }
            return out
        }

        /// What `make deb` builds, held against Debian's own checker, and a fresh Debian 12 to put it into.
        private static func release(in scratch: Scratch) throws -> (
            first: String, second: String, root: String
        ) {
            var folders: [String] = []
            for revision in 1...2 {
                let made = try Finished.run(
                    ["/usr/bin/make", "-s", "-C", Machine.repository, "deb", "REVISION=\(revision)"],
                    in: scratch,
                    within: 5_000)
                guard made.ending == .exit(0) else {
                    throw HarnessError("no packages: \(made.output) \(made.errors)")
                }
                let folder = scratch.path("debs-\(revision)")
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
                let built = try FileTree.files(in: "\(Machine.repository)/.build/deb").filter {
                    $0.hasSuffix(".deb") && $0.contains("-\(revision)_")
                }
                #expect(built.count == 2, "\(built)")
                for name in built {
                    let source = "\(Machine.repository)/.build/deb/\(name)"
                    let size = try FileManager.default.attributesOfItem(atPath: source)[.size] as? Int
                    #expect(try #require(size) < 40_000_000, "\(name)")
                    try FileManager.default.copyItem(atPath: source, toPath: "\(folder)/\(name)")
                }
                folders.append(folder)
            }
            let root = scratch.path("r")
            let fresh = try Finished.run(
                [
                    "/usr/sbin/debootstrap", "--variant=minbase",
                    "--include=ca-certificates,curl,jq,libidn2-0,libsodium23,libsqlite3-0,libssl3,libstdc++6,systemd,tzdata",
                    "bookworm", root,
                ], in: scratch, within: 900)
            guard fresh.ending == .exit(0) else {
                throw HarnessError("no root: \(fresh.output.suffix(2_000))")
            }
            return (folders[0], folders[1], root)
        }

        @Test
        func `the packages are installed, set up by the page, upgraded under load, removed and purged`()
            throws
        {
            try Machine.requireRoot("to mount a root of its own")
            let scratch = try Scratch(isShared: true)
            let (first, second): (String, String)
            var options: [String] = []
            if Soak.isWhole {
                let release = try Self.release(in: scratch)
                (first, second) = (release.first, release.second)
                options = ["--root", release.root]
            } else {
                // The programs that are built anyway, and a root over this machine's: a release build takes longer than all tests.
                let programs = (Machine.sendgate as NSString).deletingLastPathComponent
                first = try Self.build(programs, in: scratch)
                second = try Self.revised(first, in: scratch)
            }
            let apple = scratch.path("apple")
            try FileManager.default.createDirectory(atPath: apple, withIntermediateDirectories: false)
            let peers = "\(Machine.repository)/Tests/CourierProvidersTests/peers"
            let made = try Finished.run(
                [Machine.python, "\(peers)/push_keys.py", apple], in: scratch, within: 60)
            try #require(made.ending == .exit(0), "\(made.errors)")
            let service = try ChildProcess(
                [Machine.python, "\(peers)/push_service.py", apple], errorPath: scratch.path("apple.stderr"))
            let port = try service.readLine(within: 30)

            let ran = try Finished.run(
                [
                    Machine.python, Machine.peer("installed_packages.py"), "--first", first, "--second",
                    second,
                    "--page", "\(Machine.repository)/Sources/sendgate/Sendgate.docc/Production.md",
                    "--apple", apple, "--port", port,
                ] + options, in: scratch, within: 500)
            try #require(ran.ending == .exit(0), "\(ran.errors)")
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let found = try decoder.decode(Found.self, from: Data(ran.output.utf8))

            #expect(found.foreignUser == [true, true], "a foreign user was taken over")
            #expect(found.installed && found.bundleFromAnywhere == 0)
            #expect(found.pageSeconds < 900 && found.firstSend == "forward", "\(found)")
            #expect(found.faults.isEmpty, "\(found.faults)")
            #expect(found.status.hasPrefix("ready, under `starter`"), "\(found.status)")
            #expect(found.courierStatus == "ready, with 1 way out", "\(found.courierStatus)")
            // Nobody of the load is registered: every send is decided, and refused.
            #expect(found.upgrade.newProcess && found.load.failures.isEmpty, "\(found.upgrade) \(found.load)")
            #expect(Set(found.load.statuses.keys).isSubset(of: ["403"]), "\(found.load)")
            #expect(found.load.statuses.values.reduce(0, +) > 50, "\(found.load)")
            #expect(found.unproved.sameProcess && found.unproved.said && found.unproved.answers == "200")
            #expect(!found.removed.program && !found.removed.socket && !found.removed.process)
            #expect(found.removed.configuration)
            #expect(
                found.left == ["etc/sendgate/root.key", "var/lib/sendgate/keys", "var/lib/sendgate/trail"])
        }

        @Test func `the page takes a newcomer 1,500 words at most`() throws {
            let page = try String(
                contentsOfFile: "\(Machine.repository)/Sources/sendgate/Sendgate.docc/Production.md",
                encoding: .utf8)
            let count = page.split { $0.isWhitespace }.count
            #expect((500...1_500).contains(count), "\(count) words")
        }
    }
}
