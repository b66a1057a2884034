import Foundation
import Testing

extension EndToEnd {
    @Suite struct CanaryTests {
        @Test func `two thousand sealed sends leave their plaintext nowhere`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop + ["--log-level", "trace"])
            try gate.start()
            let canary = try ChildProcess(
                [Machine.python, Machine.peer("canary.py"), gate.folder, layer.record],
                errorPath: scratch.path("canary.stderr"))
            // The phone tells the marker once it has found it inside what was sealed.
            let marker = try canary.readLine(within: 120)
            #expect(marker.utf8.count >= 16 && marker.allSatisfy(\.isASCII), "\(marker) \(canary.errors)")
            try layer.waitForMessages(2_000, within: 120)

            // First what is known to be there, or the search could be blind: the type's name is in the trail, in
            // the databases, and a stored text is not.
            let places = [gate.folder, layer.record, scratch.path("gate.stderr.1")]
            let control = try Self.search(for: "transaction.remittance_sent", in: places)
            #expect(control.contains { $0.contains("/trail/tile/entries/") }, "\(control)")
            #expect(control.contains { $0.contains("/state/gate.db") }, "\(control)")

            // While it runs, so that write-ahead logs and whatever it holds open are there.
            let open = try Self.openFiles(of: gate.processID)
            #expect(open.contains { $0.hasSuffix("gate.db-wal") }, "\(open)")
            for form in Self.forms(of: marker) {
                let found = try Self.search(for: form, in: places + open)
                #expect(found.isEmpty, "`\(form)` is in \(found)")
            }
            #expect(try gate.stop() == .exit(0))
            for form in Self.forms(of: marker) {
                let found = try Self.search(for: form, in: places)
                #expect(found.isEmpty, "after the stop, `\(form)` is in \(found)")
            }
        }

        /// The marker as it is and as it could stand inside something encoded. Base64 by its three alignments,
        /// without the characters that depend on the neighbours.
        private static func forms(of marker: String) -> [String] {
            let bytes = Array(marker.utf8)
            let hexadecimal = bytes.map { String(format: "%02x", $0) }.joined()
            let base64 = (0..<3).map { shift in
                let text = Data([UInt8](repeating: 0x20, count: shift) + bytes).base64EncodedString()
                return String(text.dropFirst(shift == 0 ? 0 : 4).dropLast(4))
            }
            return [
                marker, marker.lowercased(), hexadecimal, hexadecimal.uppercased(), String(marker.reversed()),
            ]
                + base64
        }

        /// Files that hold the text, byte for byte.
        private static func search(for text: String, in places: [String]) throws -> [String] {
            let needle = Data(text.utf8)
            var found: [String] = []
            for place in places {
                var isFolder: ObjCBool = false
                guard FileManager.default.fileExists(atPath: place, isDirectory: &isFolder) else { continue }
                let files =
                    isFolder.boolValue
                    ? FileManager.default.enumerator(atPath: place)?.compactMap { "\(place)/\($0)" } ?? []
                    : [place]
                for file in files {
                    guard let data = try? Data(contentsOf: URL(fileURLWithPath: file)) else { continue }
                    if data.range(of: needle) != nil { found.append(file) }
                }
            }
            return found
        }

        /// Regular files a process holds open, deleted ones included.
        private static func openFiles(of process: pid_t) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").compactMap { name in
                let link = "/proc/\(process)/fd/\(name)"
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: link)
                guard let target, target.hasPrefix("/"), !target.hasPrefix("/dev/"),
                    !target.hasPrefix("/proc/")
                else { return nil }
                return target.hasSuffix(" (deleted)") ? link : target
            }
        }
    }
}
