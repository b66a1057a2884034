import Testing

extension EndToEnd {
    /// The help for editors, held against the bundle by readers that were not written here.
    @Suite struct SchemaTests {
        @Test func `every page of the bundle fits its JSON Schema`() throws {
            let scratch = try Scratch()
            let finished = try Finished.run(
                [Machine.python, Machine.peer("check_schemas.py"), Machine.policies], in: scratch, within: 60)
            #expect(finished.ending == .exit(0), "\(finished.output)\(finished.errors)")
            #expect(finished.errors.contains(" 0 failures"))
        }
    }
}
