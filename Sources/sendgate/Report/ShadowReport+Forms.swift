import CanonicalJSON
import CommandTerminal
import GateVocabulary
import PublicPages

// One report in four forms: for a terminal, a spreadsheet, a machine, and as a page that an officer signs.

extension ShadowReport {
    /// The stretch of time in words.
    private var span: String {
        let since = (period.since ?? first)?.rfc3339 ?? "?"
        let until = (period.until ?? last)?.rfc3339 ?? "?"
        return "from \(since) to \(until)"
    }

    static let nothing = "nothing was decided in shadow in this period"

    // MARK: Terminal

    private static let columns = [
        "sends", "would go out", "of these later", "would be stopped", "sent all the same",
        "allowed, not sent",
    ]
    /// The same where there is room.
    private static let pageColumns = columns.dropLast() + ["allowed here, and its own sender did not send it"]

    private static func cells(_ line: Line) -> [String] {
        [
            line.sends, line.forwarded.sends, line.later.sends, line.stopped.sends, line.stopped.sent,
            line.forwarded.notSent,
        ].map(ReportLines.grouped)
    }

    var lines: [String] {
        guard total.sends > 0 else { return [Self.nothing] }
        var lines = ["\(span), \(ReportLines.grouped(total.sends)) sends in shadow"]
        if enforcedCount > 0 {
            lines.append(
                "\(ReportLines.grouped(enforcedCount)) more were carried out, and are not counted here")
        }
        if !saysSent { lines.append("no producer says what its own sender did (`sent`)") }
        for (name, group) in [("type", types), ("reason", reasons), ("country", countries)] {
            var table = Table(
                name, Self.columns[0], Self.columns[1], Self.columns[2], Self.columns[3], Self.columns[4],
                Self.columns[5])
            for line in group + [total] {
                let cells = Self.cells(line)
                table.add(line.name, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5])
            }
            lines += [""] + table.lines
        }
        guard !stops.isEmpty else { return lines }
        lines += ["", "what would have been stopped, with the first sends of each"]
        for stop in stops {
            lines.append(
                "  \(Terminal.printable(stop.type))  \(stop.reason.rawValue)  \(ReportLines.grouped(stop.count.sends)), \(ReportLines.grouped(stop.count.sent)) of them sent all the same"
            )
            for sample in stop.samples {
                lines.append(
                    "    entry \(sample.entry)  send \(sample.send.uuidText)  \(Terminal.printable(sample.sentence))"
                )
            }
        }
        return lines
    }

    /// Whether any producer says what its own sender did.
    private var saysSent: Bool { total.forwarded.unsaid + total.stopped.unsaid < total.sends }

    // MARK: Spreadsheet

    /// RFC 4180, one line for each type, reason and country: every other figure is a sum of these.
    var csv: String {
        var text = "type,outcome,reason,country,sends,sent,not_sent,not_said\r\n"
        for row in rows {
            let cells = [
                row.type, row.reason.outcome.name, row.reason.rawValue, row.country, "\(row.count.sends)",
                "\(row.count.sent)", "\(row.count.notSent)", "\(row.count.unsaid)",
            ]
            text += cells.map(Self.quoted).joined(separator: ",") + "\r\n"
        }
        return text
    }

    /// A cell that a spreadsheet takes for neither two cells nor a formula.
    static func quoted(_ cell: String) -> String {
        // By scalars: what a spreadsheet looks at is no character of its own before a mark, or beside another line end.
        let scalars = cell.unicodeScalars
        let isFormula = scalars.first.map { "=+-@\t\r\n".unicodeScalars.contains($0) } ?? false
        var text = String.UnicodeScalarView(isFormula ? "'".unicodeScalars : "".unicodeScalars)
        for scalar in scalars {
            if scalar == "\"" { text.append(scalar) }
            text.append(scalar)
        }
        let isPlain = !scalars.contains { "\",\r\n".unicodeScalars.contains($0) }
        return isPlain ? String(text) : "\"\(String(text))\""
    }

    // MARK: Machine

    var json: JSONObject {
        func count(_ count: UInt64) -> JSONValue { .integer(Int64(count)) }
        func counts(_ line: Line) -> JSONObject {
            [
                "sends": count(line.sends), "forwarded": count(line.forwarded.sends),
                "later": count(line.later.sends), "stopped": count(line.stopped.sends),
                "stopped_and_sent": count(line.stopped.sent),
                "forwarded_and_not_sent": count(line.forwarded.notSent),
                "not_said": count(line.forwarded.unsaid + line.stopped.unsaid),
            ]
        }
        func list(_ name: String, _ lines: [Line]) -> JSONValue {
            .array(
                lines.map { line in
                    var object = counts(line)
                    object[name] = .string(line.name)
                    return .object(object)
                })
        }
        var object: JSONObject = [
            "origin": .string(origin), "entries": count(entryCount), "enforced": count(enforcedCount),
            "total": .object(counts(total)), "types": list("type", types), "reasons": list("reason", reasons),
            "countries": list("country", countries),
            "policies": .array(policies.map { .string($0.text) }),
            "stopped": .array(
                stops.map { stop in
                    [
                        "type": .string(stop.type), "reason": .string(stop.reason.rawValue),
                        "sends": count(stop.count.sends), "sent": count(stop.count.sent),
                        "samples": .array(stop.samples.map { .object(Self.json($0)) }),
                    ]
                }),
        ]
        if let since = period.since ?? first { object["from"] = .string(since.rfc3339) }
        if let until = period.until ?? last { object["to"] = .string(until.rfc3339) }
        return object
    }

    private static func json(_ sample: ShadowFigures.Sample) -> JSONObject {
        var object: JSONObject = [
            "entry": .integer(Int64(sample.entry)), "send_id": .string(sample.send.uuidText),
            "at": .string(sample.at.rfc3339), "sentence": .string(sample.sentence),
        ]
        if let sent = sample.sent { object["sent"] = .boolean(sent) }
        return object
    }

    // MARK: Page

    /// One page that needs nothing beside it: no script, no font, no image, nothing to load. It prints in black on white, and
    /// ends with the line that is signed.
    var page: [UInt8] {
        let head = HTML.element(
            "head", .element("meta", ["charset": "utf-8"]),
            .element("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"]),
            .element("title", .text(Self.title)), .element("style", .text(Self.style)))
        let body = HTML.node(
            "body", [],
            [
                .element("h1", .text(Self.title)), .element("p", .text(summary)),
                .element(
                    "p", ["class": "n"],
                    .text(
                        "Counted from \(ReportLines.grouped(entryCount)) verified entries of the trail \(origin). It names no person; an entry's number leads to its evidence, and to nobody's name."
                    )),
            ] + tables + signature)
        return HTML.document(.element("html", ["lang": "en"], head, body))
    }

    private static let title = "What the gate would have stopped"

    private var summary: String {
        let span = span.prefix(1).uppercased() + span.dropFirst()
        guard total.sends > 0 else { return "\(span): \(Self.nothing)." }
        let share = Share(part: total.stopped.sends, of: total.sends).text
        let said =
            saysSent
            ? "The producers’ own senders sent \(ReportLines.grouped(total.stopped.sent)) of those all the same, and did not send \(ReportLines.grouped(total.forwarded.notSent)) that are allowed here."
            : "No producer says what its own sender did with them."
        return
            "\(span), \(ReportLines.grouped(total.sends)) sends were decided in shadow. \(ReportLines.grouped(total.stopped.sends)) of them (\(share)) would have been stopped. \(said)"
    }

    private var tables: [HTML] {
        var parts: [HTML] = []
        for (name, lines) in [("Type", types), ("Reason", reasons), ("Country", countries)]
        where !lines.isEmpty {
            parts.append(.element("h2", .text("By \(name.lowercased())")))
            parts.append(
                Self.table(
                    [name] + Self.pageColumns.map { $0.prefix(1).uppercased() + $0.dropFirst() },
                    (lines + [total]).map { [$0.name] + Self.cells($0) }, ofFigures: true))
        }
        guard !stops.isEmpty else { return parts }
        parts.append(.element("h2", .text("What would have been stopped, and why")))
        for stop in stops {
            parts.append(
                .element(
                    "h3",
                    .text(
                        "\(stop.type): \(stop.reason.title) (\(ReportLines.grouped(stop.count.sends)), \(ReportLines.grouped(stop.count.sent)) sent all the same)"
                    )))
            parts.append(
                Self.table(
                    ["Entry", "Send", "When", "Sent", "Why"],
                    stop.samples.map { sample in
                        [
                            "\(sample.entry)", sample.send.uuidText, "\(sample.at.rfc3339.prefix(16))Z",
                            sample.sent.map { $0 ? "yes" : "no" } ?? "not said", sample.sentence,
                        ]
                    }))
        }
        return parts
    }

    /// - Parameter isOfFigures: Whether all but the first column are numbers.
    private static func table(
        _ columns: [String], _ rows: [[String]], ofFigures isOfFigures: Bool = false
    ) -> HTML {
        func row(_ element: String, _ cells: [String]) -> HTML {
            .node("tr", [], cells.map { .element(element, .text(Terminal.printable($0))) })
        }
        return .element(
            "table", ["class": isOfFigures ? "f" : "s"], .element("thead", row("th", columns)),
            .node("tbody", [], rows.map { row("td", $0) }))
    }

    private var signature: [HTML] {
        let digests = policies.map(\.text).joined(separator: ", ")
        return [
            .element("h2", .text("Seen")),
            .element("p", ["class": "n"], .text("Decided under: \(digests.isEmpty ? "–" : digests)")),
            Self.table(["Name", "Date", "Signature"], [["", "", ""]]),
        ]
    }

    // Without quotes and angle brackets, which an escape would change.
    private static let style = """
        body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1b1f24; \
        background: #fff } h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem } h3 { font-size: 1rem } \
        table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem } th, td { border: 1px solid #c4cad1; \
        padding: .3rem .5rem; text-align: left; vertical-align: top; overflow-wrap: break-word } th { background: #f0f2f5 } \
        td { height: 1.4em; font-variant-numeric: tabular-nums } .f td + td, .f th + th { text-align: right } .s td:last-child { width: 50% } .n { color: #57606a } \
        @media print { body { margin: 0; max-width: none; font-size: 10pt } thead { display: table-header-group } \
        tr, h2, h3 { break-inside: avoid; break-after: auto } }
        """
}
