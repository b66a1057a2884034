import CanonicalJSON
import CommandTerminal
import ThreadMetering

/// The benchmark's end of a `GatewayMeter`.
struct MeterClient {
    let line: MeterLine

    /// What `body` made the gateway do.
    ///
    /// - Returns: Counts by `GatewayStage`, or why nothing was counted: then `body` did not run.
    func count(during body: () async throws -> Void) async throws
        -> Result<[String: UInt64], ThreadCounters.Refused>
    {
        line.write("begin")
        if let refused = try answer()["refused"]?.stringValue { return .failure(.init(refused)) }
        do {
            try await body()
        } catch {
            line.write("end")
            _ = try? answer()
            throw error
        }
        line.write("end")
        let answer = try answer()
        if let refused = answer["refused"]?.stringValue { return .failure(.init(refused)) }
        return .success(
            (answer["counts"]?.objectValue ?? [:]).reduce(into: [:]) {
                $0[$1.key] = UInt64(clamping: $1.value.integerValue ?? 0)
            })
    }

    private func answer() throws -> JSONObject {
        guard let text = line.read(), case .object(let object) = try CanonicalJSON.read(Array(text.utf8))
        else {
            throw CommandFailure("the gateway does not say what it counted")
        }
        return object
    }
}
