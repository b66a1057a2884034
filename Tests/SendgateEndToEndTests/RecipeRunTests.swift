import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    /// The handbook's recipes, followed on a copy of the sources.
    @Suite struct RecipeRunTests {
        private static func recipe(_ name: String) throws -> Recipe {
            try #require(try Recipe.all().first { $0.name == name }, "no recipe is named `\(name)`")
        }

        private static let recipes = [
            ("A fact", 8), ("A reason, or a detail of one", 4), ("A gate", 8), ("A kind of entry", 4),
            ("A route", 3), ("A command", 2),
        ]

        @Test(arguments: Soak.part(of: recipes, 1, "recipes"))
        func `a recipe's edits compile, with every file that names a case beside a new one`(
            name: String, editCountMin: Int
        ) throws {
            let recipe = try Self.recipe(name)
            #expect(recipe.edits.count >= editCountMin)
            let copy = try RecipeCopy()
            for edit in recipe.edits { try copy.apply(edit) }
            #expect(try copy.check(recipe.edits) == [])
        }

        @Test func `a recipe that leaves out a place is refused by the compiler, which names it`() throws {
            let recipe = try Self.recipe("A reason, or a detail of one")
            let copy = try RecipeCopy()
            let declaration = "Sources/GateVocabulary/ReasonDeclaration.swift"
            for edit in recipe.edits where edit.path != declaration { try copy.apply(edit) }
            let errors = try copy.check(recipe.edits.filter { $0.module == "GateVocabulary" })
            #expect(
                errors.contains { $0.contains(declaration) && $0.contains("must be exhaustive") }, "\(errors)"
            )
        }

        @Test func `a new type has no problem, passes its case and breaks no law`() throws {
            let recipe = try Self.recipe("A type of notification")
            let copy = try RecipeCopy()
            for edit in recipe.edits { try copy.apply(edit) }
            for command in ["check", "test", "prove"] {
                let finished = try Finished.run(
                    [Machine.sendgate, "policy", command, copy.scratch.path("Policies")], in: copy.scratch,
                    within: 120)
                #expect(finished.ending == .exit(0), "\(command): \(finished.output)\(finished.errors)")
            }
        }
    }
}
