import Foundation
import ImportFiles
import Testing

/// A file that a test writes, gone with the test.
final class SampleFile: Sendable {
    let path: String

    init(_ bytes: [UInt8]) {
        path = NSTemporaryDirectory() + "sendgate-import-\(UUID().uuidString)"
        _ = FileManager.default.createFile(atPath: path, contents: Data(bytes))
    }

    convenience init(_ text: String) { self.init(Array(text.utf8)) }

    deinit { unlink(path) }

    var descriptor: Int32 { open(path, O_RDONLY | O_CLOEXEC) }
}

/// Comma-separated values as RFC 4180 has them, of any size and in five encodings.
@Suite struct CSVReaderTests {
    /// The rows of a file, each as its line and its fields, or the reason why it has none.
    static func rows(
        _ file: SampleFile, separator: UInt8 = UInt8(ascii: ","), encoding: TextEncoding = .utf8
    ) throws -> [(line: Int, fields: [String]?, reason: String?)] {
        var reader = try CSVReader(descriptor: file.descriptor, separator: separator, encoding: encoding)
        var rows: [(line: Int, fields: [String]?, reason: String?)] = []
        while let record = try reader.next() {
            switch record.content {
            case .success(.fields(let fields)): rows.append((record.line, fields, nil))
            case .success(.json): Issue.record("a line of JSON in a CSV file")
            case .failure(let problem): rows.append((record.line, nil, problem.reason))
            }
        }
        return rows
    }

    @Test func `quotes, separators and line ends within fields are read as RFC 4180 says`() throws {
        let file = SampleFile("a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\r\n\r\n,,\"\"\n\"p\",q,r")
        let rows = try Self.rows(file)
        #expect(rows.map(\.fields) == [["1", "x, \"y\"\nz", ""], ["", "", ""], ["p", "q", "r"]])
        #expect(rows.map(\.line) == [2, 5, 6])
    }

    @Test(arguments: TextEncoding.allCases)
    func `a file is read alike in each encoding, with its mark and without`(encoding: TextEncoding) throws {
        let text = "navn,by\nKåre Ødegård,Tromsø\n\"Zoë, \"\"Z\"\"\",Åre\n"
        let foundation: String.Encoding =
            switch encoding {
            case .utf8: .utf8
            case .utf16LittleEndian: .utf16LittleEndian
            case .utf16BigEndian: .utf16BigEndian
            case .latin1: .isoLatin1
            case .windows1252: .windowsCP1252
            }
        let bytes = Array(try #require(text.data(using: foundation)))
        let expected = [["Kåre Ødegård", "Tromsø"], ["Zoë, \"Z\"", "Åre"]]
        #expect(try Self.rows(SampleFile(bytes), encoding: encoding).map(\.fields) == expected)
        let marks: [TextEncoding: [UInt8]] = [
            .utf8: [0xEF, 0xBB, 0xBF], .utf16LittleEndian: [0xFF, 0xFE], .utf16BigEndian: [0xFE, 0xFF],
        ]
        // A mark goes before what the map says.
        if let mark = marks[encoding] {
            #expect(try Self.rows(SampleFile(mark + bytes)).map(\.fields) == expected)
        }
    }

    @Test func `what only Windows has, and what lies above 16 bits, is read`() throws {
        #expect(
            try Self.rows(SampleFile([0x61, 0x0A, 0x80, 0x0A]), encoding: .windows1252).first?.fields
                == ["€"])
        let pair = Array(try #require("a\n😀\n".data(using: .utf16BigEndian)))
        #expect(try Self.rows(SampleFile(pair), encoding: .utf16BigEndian).first?.fields == ["😀"])
        // A half of a pair.
        #expect(throws: ImportFileError.notEncoded(.utf16BigEndian)) {
            try Self.rows(SampleFile(Array(pair.dropLast(4))), encoding: .utf16BigEndian)
        }
    }

    @Test func `a record that breaks the rules costs itself, and reading goes on with the next line`() throws
    {
        let file = SampleFile(
            "a,b\n1,2\nbare \" quote,3\n\"closed\"x,4\n5\n6,7,8\n\"never closed,9\n10,11\n")
        let rows = try Self.rows(file)
        #expect(
            rows.map { $0.reason ?? $0.fields!.joined(separator: "+") } == [
                "1+2", "bare_quote", "bare_quote", "column_count", "column_count", "quote_not_closed",
                "10+11",
            ])
        #expect(rows.map(\.line) == [2, 3, 4, 5, 6, 7, 8])
        let other = try Self.rows(SampleFile([0x61, 0x0A, 0xE5, 0x0A, 0x62, 0x0A]))
        #expect(other.map(\.reason) == ["not_utf8", nil])
    }

    @Test func `ten million columns, and a line without an end, cost one record and little memory`() throws {
        var bytes = Array("a,b\n1,2\n".utf8)
        bytes += [UInt8](repeating: UInt8(ascii: ","), count: 10_000_000)
        bytes += Array("\n3,4\n".utf8)
        bytes += [UInt8](repeating: UInt8(ascii: "x"), count: 3_000_000)
        bytes += Array("\n5,6\n".utf8)
        let rows = try Self.rows(SampleFile(bytes))
        #expect(
            rows.map { $0.reason ?? $0.fields!.joined(separator: "+") } == [
                "1+2", "too_many_columns", "3+4", "record_too_long", "5+6",
            ])
        #expect(rows.map(\.line) == [2, 3, 4, 5, 6])
    }

    @Test(arguments: [
        ("", "the file is empty"), ("a,,b\n", "a column has no name"),
        ("a,b,a\n", "two columns are named `a`"),
        ("a\0,b\0\n", "zero bytes"), ("a,\"b\n", "a quotation mark opens"),
    ])
    func `a header that names no columns ends the import before it begins`(text: String, why: String) {
        #expect {
            _ = try Self.rows(SampleFile(text))
        } throws: { "\($0)".contains(why) }
    }

    @Test func `lines of JSON are cut as a stream's are`() throws {
        let file = SampleFile("{\"a\": 1}\r\n\n" + String(repeating: "x", count: 300_000) + "\n{\"b\": 2}")
        var reader = try NDJSONReader(descriptor: file.descriptor)
        var read: [String] = []
        while let record = try reader.next() {
            switch record.content {
            case .success(.json(let bytes)):
                read.append("\(record.line) \(String(decoding: bytes, as: UTF8.self))")
            case .success(.fields): Issue.record("fields in a file of lines")
            case .failure(let problem): read.append("\(record.line) \(problem.reason)")
            }
        }
        #expect(read == ["1 {\"a\": 1}", "3 record_too_long", "4 {\"b\": 2}"])
    }

    @Test(arguments: [
        ("id,name\r\nk_1,Ada\n", "its first line is `id,name`"),
        ("\n[{\"a\": 1},\n {\"b\": 2}]\n", "one JSON array"),
        ("\u{1F}\u{8B}\u{08}", "its first line is"),
        (String(repeating: "x", count: 300), "`" + String(repeating: "x", count: 60) + "`"),
    ])
    func `a file whose first lines are no documents is told once`(text: String, why: String) {
        let file = SampleFile(text)
        #expect {
            _ = try NDJSONReader(descriptor: file.descriptor)
        } throws: { "\($0)".contains(why) }
    }

    @Test(arguments: ["", "\n\n", "# a line of another kind\n{\"a\": 1}\n", "  {\"a\": 1}"])
    func `a file with a document among its first lines, or with none at all, is read`(text: String) throws {
        let file = SampleFile(text)
        var reader = try NDJSONReader(descriptor: file.descriptor)
        var count = 0
        while try reader.next() != nil { count += 1 }
        #expect(count == text.split(separator: "\n").count)
    }

    @Test func `lines of JSON are read in the encoding of the map`() throws {
        let bytes = Array(try #require("{\"by\": \"Tromsø\"}\n".data(using: .utf16LittleEndian)))
        var reader = try NDJSONReader(descriptor: SampleFile(bytes).descriptor, encoding: .utf16LittleEndian)
        guard case .success(.json(let line))? = try reader.next()?.content else {
            Issue.record("no line was read")
            return
        }
        #expect(String(decoding: line, as: UTF8.self) == "{\"by\": \"Tromsø\"}")
    }
}
