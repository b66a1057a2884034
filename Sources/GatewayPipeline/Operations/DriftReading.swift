import GateSteps
import GateVocabulary
import GateRecords
import WireProtocol

extension GatewayReading {
    /// The state of the newest drift run.
    func driftRun() throws -> Answer {
        guard let run = try store.driftRun() else {
            throw Problem(.notFound, detail: "no drift audit has run yet; `POST /v1/drift` begins one")
        }
        return Answer(DriftRunAnswer(run))
    }

    /// The findings of the newest audit for the next people, without those that were resolved since.
    func driftFindings(_ query: DriftFindingsQuery) throws -> Answer {
        let people = try store.people(after: query.after, limit: Int(query.limit))
        var rows: [DriftFindingsAnswer.Row] = []
        for subject in people {
            do {
                guard let state = try store.state(of: subject) else { continue }
                rows += state.drifts.map { finding in
                    DriftFindingsAnswer.Row(
                        finding, of: subject, at: state.devices.first { $0.tag == finding.device })
                }
            } catch let error as StoreError where error.damage != nil {
                // The store's own list names it.
                continue
            }
        }
        let next = people.count < Int(query.limit) ? nil : people.last
        return Answer(DriftFindingsAnswer(rows: rows, next: next))
    }
}

extension DriftRunAnswer {
    init(_ run: DriftRun) {
        self.init(
            startedAt: run.startedAt, startedBy: run.startedBy, finishedAt: run.finishedAt,
            isDryRun: run.isDryRun, examinedCount: run.examinedCount, unreadableCount: run.unreadableCount,
            recordedCount: run.recordedCount, resolvedCount: run.resolvedCount, found: run.found)
    }
}

extension DriftFindingsAnswer.Row {
    init(_ finding: DriftFinding, of subject: SubjectID, at device: DeviceRecord?) {
        // Only the order to a provider needs the name the provider knows the device by.
        let isOrder =
            finding.action == .repaired
            && (finding.kind == .subscribedWhileOff || finding.kind == .unsubscribedWhileOn)
        self.init(
            subject: subject, finding: finding, device: device?.id.text, app: device?.app,
            token: isOrder ? device?.token : nil)
    }
}
