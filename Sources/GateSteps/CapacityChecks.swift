import GateVocabulary

extension StepContext {
    /// Refuses a send before it is decided when the trail or the outbox cannot take its entry and messages.
    package func requireRoom(isSecurity: Bool) throws {
        let headroom = try memory.headroom()
        guard headroom.publishLag <= limits.publishLagMillisecondsMax else {
            throw EngineFailure.trailBehind(milliseconds: headroom.publishLag)
        }
        let needed = limits.freeDiskByteCountMin
        let floor = isSecurity ? needed * Int64(limits.securitySharePercent) / 100 : needed
        guard try headroom.freeByteCount.get() >= floor else {
            throw EngineFailure.diskLow(byteCountMin: floor)
        }
        if !isSecurity { memory.affect { $0.provesRoom = true } }
    }

    /// The last share of the outbox is open to the security category only.
    func requireOutboxRoom(
        for caller: CallerName, to subject: SubjectID, isSecurity: Bool
    ) throws {
        let depth = try memory.outboxDepth(of: caller)
        guard depth.rowCount < limits.part(of: limits.outboxRowCountMax, isSecurity: isSecurity),
            depth.byteCount < limits.part(of: limits.outboxByteCountMax, isSecurity: isSecurity),
            isSecurity
                || depth.rowCountOfCaller < limits.outboxRowCountPerCallerMax
        else { throw EngineFailure.outboxFull }
        // Rounded up: of what may wait for one person in all, the share is not less than its percentage.
        let rest = 100 - limits.securitySharePercent
        let personMax = (limits.outboxRowCountPerPersonMax * 100 + rest - 1) / rest
        let personShare = isSecurity ? personMax : limits.outboxRowCountPerPersonMax
        // Loaded once for all steps of a batch, so up to the bound that security has; and only where so many wait at all.
        guard
            try depth.rowCount < personShare
                || memory.outboxCount(of: subject, limit: personMax) < personShare
        else { throw EngineFailure.outboxFullForRecipient }
    }
}
