import Foundation
import Testing

extension EndToEnd {
    /// Composed bodies, held against Google's own description of the interface.
    @Suite struct FCMTests {
        private static let shapes = "\(Machine.repository)/Tests/Fixtures/FCM/fcm-v1-shapes.json"
        private static let golden = "\(Machine.repository)/Tests/PayloadCompositionTests/Golden"

        private func check(_ files: [String], in scratch: Scratch) throws -> Finished {
            try Finished.run(
                [Machine.python, Machine.peer("check_fcm.py"), Self.shapes] + files, in: scratch, within: 30)
        }

        @Test func `every body for FCM is one that FCM takes`() throws {
            let files = try FileManager.default.contentsOfDirectory(atPath: Self.golden)
                .filter { $0.hasPrefix("fcm-") }.map { "\(Self.golden)/\($0)" }
            #expect(files.count >= 10)
            let finished = try check(files, in: try Scratch())
            #expect(finished.ending == .exit(0), "\(finished.errors)")
            #expect(finished.output.hasPrefix("\(files.count) bodies fit fcm:v1 revision "))
        }

        /// What is put in place of another text of a real body, and what must be said of it.
        static let cases: [(name: String, from: String, to: String, told: String)] = [
            (
                "a property FCM does not know", #""restrictedPackageName":"#, #""packageName":"#,
                "/message/android/packageName: is no property"
            ),
            (
                "another type", #""priority":"HIGH""#, #""priority":1"#,
                "/message/android/priority: expected string"
            ),
            (
                "another name of a list", #""priority":"HIGH""#, #""priority":"URGENT""#,
                "/message/android/priority: 'URGENT' is none of"
            ),
            (
                "no duration", #""ttl":"172800s""#, #""ttl":"172800""#,
                "/message/android/ttl: '172800' is no duration"
            ),
            (
                "a duration of more than four weeks", #""ttl":"172800s""#, #""ttl":"2419201s""#,
                "/message/android/ttl: '2419201s' is longer than four weeks"
            ),
            (
                "a data key that is taken", #""data":{"#, #""data":{"google.x":"y","#,
                "/message/data/google.x: is reserved"
            ),
            (
                "a number as data", #""data":{"#, #""data":{"number":1,"#,
                "/message/data/number: expected string"
            ),
            (
                "what only FCM says", #"{"message":{"#, #"{"message":{"name":"projects/x","#,
                "/message/name: is output only"
            ),
            (
                "a token", #"{"message":{"#, #"{"message":{"token":"t","#,
                "/message/token: a token must not be copied into a body"
            ),
            (
                "too many bytes", #""data":{"#,
                #""data":{"x":"\#(String(repeating: "x", count: 4096))","#, "bytes, FCM takes 4096"
            ),
        ]

        @Test(arguments: cases)
        func `a body with one thing wrong is refused for that thing`(
            name: String, from: String, to: String, told: String
        ) throws {
            let scratch = try Scratch()
            let body = try String(contentsOfFile: "\(Self.golden)/fcm-sealed-en.golden", encoding: .utf8)
            let wrong = body.replacing(from, with: to, maxReplacements: 1)
            #expect(wrong != body, "there is no `\(from)` to spoil")
            let finished = try check([try scratch.write("wrong", wrong)], in: scratch)
            #expect(finished.ending == .exit(3), "\(finished.output)")
            #expect(finished.errors.contains(told), "\(finished.errors)")
            #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
        }
    }
}
